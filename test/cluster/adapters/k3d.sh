#!/usr/bin/env bash
# A cluster for `make e2e` with k3d and docker: see ../README.md.
set -euo pipefail
name=postern-e2e
kubeconfig=${TMPDIR:-/tmp}/$name.kubeconfig
case ${1:-} in
  up)
    k3d cluster get "$name" >/dev/null 2>&1 || k3d cluster create "$name" --kubeconfig-update-default=false --wait >&2
    k3d kubeconfig get "$name" >"$kubeconfig"
    echo "KUBECONFIG=$kubeconfig"
    ;;
  image)
    docker build --target "$3" --tag "$2" . >&2
    k3d image import --cluster "$name" "$2" >&2
    ;;
  down) k3d cluster delete "$name" >&2 ;;
  *) echo "usage: $0 up | image NAME:TAG TARGET | down" >&2; exit 2 ;;
esac
