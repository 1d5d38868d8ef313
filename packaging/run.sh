#!/usr/bin/env bash
# What `make run` does after the set-up: offer the weights of the embedded model, then open the app.
# Usage: packaging/run.sh BIN        YES=1 answers the question.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
models=$("$bin/desktop-host" models list --json 2>/dev/null) || true
if ! grep -q '"source": *"local".*"ready": *true' <<<"$models"; then
  answer=${YES:+y}
  if [ -z "$answer" ] && [ -t 0 ]; then
    printf 'Fetch the embedded model (Qwen2.5-Coder 0.5B, Apache-2.0, about 470 MB, once)? It answers without a key. [Y/n] ' >&2
    read -r answer
    answer=${answer:-y}
  fi
  case "$answer" in
    [yY]*) "$bin/desktop-host" models get local || echo "The weights could not be fetched; the app opens without them." >&2 ;;
    *) echo "Not fetched. 'desktop-host models get local' fetches it later." >&2 ;;
  esac
fi
exec "$bin/desktop-host"
