# For scripts that take programs, or the Python package, to a machine with a GPU and nothing of what they need: sourced here and there.
#   pack_program DIR PROGRAM                        here: a program, GRETA's runtime and the libraries that they need into DIR and DIR/lib
#   pack_loader DIR REPOSITORY                      here: the Vulkan loader and the commit into DIR
#   unpack_xz FILE                                  there: FILE.xz becomes FILE, a program, without a tool for it
#   enter_loader DIR ROOT                           there: a machine without a Vulkan loader gets DIR's, unpacked into ROOT
#   pack_package DIR WHEEL REPOSITORY PACKAGES...   here: the wheel, other packages for its Python, the Vulkan loader, the commit and this file into DIR
#   enter_package DIR                               there: $python imports them; $work is a folder to be removed; says what the machine is

pack_program() {
  local dir=$1 program=$2
  mkdir -p "$dir/lib"
  cp "$program" "$dir/"
  cp -L build/lib/libgreta_runtime.so "$dir/lib/"
  ln -sf libgreta_runtime.so "$dir/lib/libgreta_runtime.so.0"
  # Everything but the C and C++ libraries, which every machine has, and the Vulkan loader (enter_loader).
  ldd build/lib/libgreta_runtime.so "$program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' |
    grep -vE '/(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|libgreta_runtime|libvulkan)\.so' | sort -u | xargs -r cp -L -t "$dir/lib"
}

pack_loader() {
  local dir=$1 repository=$2
  # The loader and what the vendor's driver links against: a machine with nothing but that driver has neither.
  mkdir -p "$dir/loader"
  (cd "$dir/loader" && apt-get -qq -oAPT::Sandbox::User=root download libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2)
  { git -C "$repository" rev-parse --short HEAD; git -C "$repository" diff --quiet HEAD || echo -dirty; } | tr -d '\n' >"$dir/commit"
}

unpack_xz() {
  if [ ! -e "$1.xz" ]; then return; fi
  python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1] + ".xz"), open(sys.argv[1], "wb"))' "$1"
  chmod +x "$1"
  rm "$1.xz"
}

enter_loader() {
  local dir=$1 root=$2 package manifest=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
  if ! ldconfig -p | grep -q libvulkan; then
    for package in "$dir"/loader/*.deb; do dpkg -x "$package" "$root"; done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$root/usr/lib/$(uname -m)-linux-gnu
  fi
  # A machine with nothing but the vendor's driver keeps its manifest here.
  if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e $manifest ]; then export VK_DRIVER_FILES=$manifest; fi
}

pack_package() {
  local dir=$1 wheel=$2 repository=$3 tag
  shift 3
  mkdir -p "$dir"
  cp "$wheel" "$repository/scripts/lib/lent_machine.sh" "$dir"
  tag=$(basename "$wheel" | cut -d- -f3)
  "$repository/build/venv/bin/python" -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: --python-version "${tag#cp}" -d "$dir" "$@"
  pack_loader "$dir" "$repository"
}

enter_package() {
  local dir=$1
  python=${PYTHON:-python3} work=$(mktemp -d)
  "$python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps --no-compile --target "$work/site" "$dir"/*.whl
  enter_loader "$dir" "$work/loader"
  # Workers side by side: torch's threads would wait for each other, and so would drivers for one cache on disk.
  export PYTHONPATH=$dir:$work/site TRITON_CACHE_DIR=$work/cache OMP_NUM_THREADS=1 __GL_SHADER_DISK_CACHE=0
  "$python" -c 'import greta, torch, triton; print("commit", open("'"$dir"'/commit").read(), "Triton", triton.__version__, "torch", torch.__version__, *greta.devices())'
  if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; fi
}
