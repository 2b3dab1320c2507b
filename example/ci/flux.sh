#!/bin/sh
# What the next reconciliation of a Flux Kustomization does to nodes: the checked-out revision against the one that was applied.
# Usage: flux.sh KUSTOMIZATION [FOLDER…]. Needs `kubectl` with access to it, and a clone with all revisions as the current folder.
set -eu
kustomization=${1:?name the Kustomization}
shift
applied=$(kubectl get kustomizations.kustomize.toolkit.fluxcd.io -n flux-system "$kustomization" -o 'jsonpath={.status.lastAppliedRevision}')
# It reads as main@sha1:<commit>.
exec gardener-extension-worker preview --git "${applied##*:}" --fail-on delete,error -- "$@"
