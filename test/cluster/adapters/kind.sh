#!/usr/bin/env bash
# A cluster for `make e2e` with kind and docker: see ../README.md.
set -euo pipefail
name=postern-e2e
kubeconfig=${TMPDIR:-/tmp}/$name.kubeconfig
case ${1:-} in
  up)
    kind get clusters | grep -qx "$name" || kind create cluster --name "$name" --kubeconfig "$kubeconfig" --wait 180s >&2
    kind export kubeconfig --name "$name" --kubeconfig "$kubeconfig" >&2
    echo "KUBECONFIG=$kubeconfig"
    ;;
  image)
    docker build --target "$3" --tag "$2" . >&2
    kind load docker-image --name "$name" "$2" >&2
    ;;
  down) kind delete cluster --name "$name" --kubeconfig "$kubeconfig" >&2 ;;
  *) echo "usage: $0 up | image NAME:TAG TARGET | down" >&2; exit 2 ;;
esac
