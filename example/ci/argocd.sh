#!/bin/sh
# What the next sync of an Argo CD application does to nodes: the checked-out revision against the one that is deployed.
# Usage: argocd.sh APPLICATION [FOLDER…]. Needs `argocd` with a login, and a clone with all revisions as the current folder.
set -eu
application=${1:?name the application}
shift
deployed=$(argocd app get "$application" -o json | sed -n 's/^ *"revision": "\([0-9a-f]\{40\}\)".*/\1/p' | head -n 1)
exec gardener-extension-worker preview --git "${deployed:?the application is not deployed from git}" --fail-on delete,error -- "$@"
