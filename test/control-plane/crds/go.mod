// Names the version of Gardener whose custom resource definitions (example/seed-crds) the control plane
// of the tests serves: Gardener's own and machine-controller-manager's. Nothing is built from it;
// `go mod download -json` tells the folder. Not for `go mod tidy`, which would drop the line.
module github.com/gardener/gardener-extension-worker/test/control-plane/crds

go 1.26.0

require github.com/gardener/gardener v1.149.3
