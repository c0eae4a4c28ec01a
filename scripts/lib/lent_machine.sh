# For scripts that take programs, or the Python package, to a machine with a GPU and nothing of what they need: sourced here and there.
#   pack_program DIR PROGRAM                        here: a program, GRETA's runtime and the libraries that they need into DIR and DIR/lib
#   pack_loader DIR REPOSITORY                      here: the Vulkan loader and the commit into DIR
#   unpack_xz FILE                                  there: FILE.xz becomes FILE, a program, without a tool for it
#   enter_loader DIR ROOT                           there: a machine without a Vulkan loader gets DIR's, unpacked into ROOT
#   pack_package DIR WHEEL REPOSITORY PACKAGES...   here: the wheel, other packages for its Python, the Vulkan loader, the commit and this file into DIR
#   pack_wheel DIR WHEEL                            here: the wheel into DIR, a third smaller than zip makes it (what travels is limited)
#   pack_lavapipe DIR                               here: this system's lavapipe with the libraries that it needs into DIR/lavapipe
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

pack_wheel() {
  local dir=$1 wheel=$2 name
  name=$(basename "$wheel")
  python3 - "$wheel" "$dir/$name" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as given, zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_STORED) as stored:
    for entry in given.infolist():
        stored.writestr(entry.filename, given.read(entry))
END
  xz --x86 --lzma2=preset=7,dict=128MiB "$dir/$name"
}

pack_lavapipe() {
  local dir=$1/lavapipe driver stub
  driver=/usr/lib/$(uname -m)-linux-gnu/libvulkan_lvp.so
  mkdir -p "$dir"
  # LLVM as its package, which is compressed already.
  (cd "$dir" && apt-get -qq -oAPT::Sandbox::User=root download "$(dpkg -S "$(ldd "$driver" | sed -n 's/.*=> .*\(libLLVM[^ ]*\) .*/\1/p')" | head -n 1 | cut -d: -f1)")
  ldd "$driver" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|libLLVM[^/]*|libz|liblzma|libz3|libxml2|libicu[a-z]*)\.so' |
    xargs cp -L -t "$dir"
  cp "$driver" "$dir"
  # LLVM links against these two for what a driver never calls; with ICU, which one of them needs, they are large. Empty libraries of their names do.
  for stub in libz3.so.4 libxml2.so.2; do
    echo 'void *xmlFree;' | cc -shared -o "$dir/$stub" -Wl,-soname,$stub -x c -
  done
  echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "./libvulkan_lvp.so", "api_version": "1.3.230"}}' >"$dir/lvp_icd.json"
}

enter_package() {
  local dir=$1 file
  for file in "$dir"/*.whl.xz; do
    if [ -e "$file" ]; then unpack_xz "${file%.xz}"; fi
  done
  python=${PYTHON:-python3} work=$(mktemp -d)
  "$python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps --no-compile --target "$work/site" "$dir"/*.whl
  enter_loader "$dir" "$work/loader"
  if [ -e "$dir/lavapipe" ]; then
    dpkg -x "$dir"/lavapipe/*.deb "$work/lavapipe"
    export VK_DRIVER_FILES=$dir/lavapipe/lvp_icd.json LD_LIBRARY_PATH=$dir/lavapipe:$work/lavapipe/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
  # Workers side by side: torch's threads would wait for each other, and so would drivers for one cache on disk.
  export PYTHONPATH=$dir:$work/site TRITON_CACHE_DIR=$work/cache OMP_NUM_THREADS=1 __GL_SHADER_DISK_CACHE=0
  "$python" -c 'import greta, torch, triton; print("commit", open("'"$dir"'/commit").read(), "Triton", triton.__version__, "torch", torch.__version__, *greta.devices())'
  if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; fi
}
