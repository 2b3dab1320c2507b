// Names the version of Cluster API's provider for AWS whose custom resource definitions (config/crd/bases) test/image_objects
// installs. Nothing is built from it; `go mod download -json` tells the folder. Not for `go mod tidy`, which would drop the line.
module github.com/gardener/gardener-extension-worker/test/control-plane/cluster-api-provider-aws

go 1.24.0

require sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
