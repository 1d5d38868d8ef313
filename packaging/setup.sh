#!/usr/bin/env bash
# Set up a virtual environment with everything the app and its tests need, and the system libraries of Qt.
# Usage: packaging/setup.sh VENV     Does nothing where all is there already.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
stamp="$venv/.desktop-host-setup"
want=$(cat pyproject.toml packaging/setup.sh | cksum)

qt_packages="libglib2.0-0 libegl1 libgl1 libdbus-1-3 libfontconfig1 libxkbcommon0 libxcb-cursor0 libxcb-icccm4
  libxcb-image0 libxcb-keysyms1 libxcb-render-util0 libxcb-shape0 libxcb-xkb1 libxkbcommon-x11-0"

if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then exit 0; fi

python=${PYTHON:-python3}
"$python" - <<'PY' || { echo "Desktop Host needs Python 3.11 or newer (set PYTHON=/path/to/python3.11)." >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" || { echo "No virtual environment could be made. On Debian: apt-get install python3-venv" >&2; exit 1; }
fi
echo "Installing Desktop Host into $venv …" >&2
env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[local,dev]'

# Qt's system libraries: installed where that is allowed, named where it is not.
if [ "$(uname -s)" = Linux ] && ! "$venv/bin/python" -c 'import PySide6.QtWidgets' 2>/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $qt_packages >/dev/null
  elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then
    sudo apt-get update -qq
    # shellcheck disable=SC2086
    sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $qt_packages >/dev/null
  else
    echo "Qt needs system libraries that are missing. On Debian or Ubuntu:" >&2
    echo "  sudo apt-get install" $qt_packages >&2
  fi
fi
echo "$want" >"$stamp"
