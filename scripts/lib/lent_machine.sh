# For scripts that take the Python package to a machine with Triton and a GPU, and nothing of the repository: sourced here and, from the pack, there.
#   pack_package DIR WHEEL REPOSITORY PACKAGES...   here: the wheel, other packages for its Python, the Vulkan loader, the commit and this file into DIR
#   enter_package DIR                               there: $python imports them; $work is a folder to be removed; says what the machine is

pack_package() {
  local dir=$1 wheel=$2 repository=$3 tag
  shift 3
  mkdir -p "$dir"
  cp "$wheel" "$repository/scripts/lib/lent_machine.sh" "$dir"
  tag=$(basename "$wheel" | cut -d- -f3)
  "$repository/build/venv/bin/python" -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: --python-version "${tag#cp}" -d "$dir" "$@"
  # The loader and what the vendor's driver links against: a machine with nothing but that driver has neither.
  mkdir -p "$dir/loader"
  (cd "$dir/loader" && apt-get -qq -oAPT::Sandbox::User=root download libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2)
  { git -C "$repository" rev-parse --short HEAD; git -C "$repository" diff --quiet HEAD || echo -dirty; } | tr -d '\n' >"$dir/commit"
}

enter_package() {
  local dir=$1 package manifest=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
  python=${PYTHON:-python3} work=$(mktemp -d)
  "$python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps --no-compile --target "$work/site" "$dir"/*.whl
  if ! ldconfig -p | grep -q libvulkan; then
    for package in "$dir"/loader/*.deb; do dpkg -x "$package" "$work/loader"; done
    export LD_LIBRARY_PATH=$work/loader/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
  # A machine with nothing but the vendor's driver keeps its manifest here.
  if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e $manifest ]; then export VK_DRIVER_FILES=$manifest; fi
  # Workers side by side: torch's threads would wait for each other, and so would drivers for one cache on disk.
  export PYTHONPATH=$dir:$work/site TRITON_CACHE_DIR=$work/cache OMP_NUM_THREADS=1 __GL_SHADER_DISK_CACHE=0
  "$python" -c 'import greta, torch, triton; print("commit", open("'"$dir"'/commit").read(), "Triton", triton.__version__, "torch", torch.__version__, *greta.devices())'
  if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; fi
}
