package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation/care"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation/controllerinstallation"
	operatorclient "github.com/gardener/gardener/pkg/operator/client"
	"github.com/gardener/gardener/pkg/operator/controller/extension/extension/admission"
	"github.com/gardener/gardener/pkg/operator/controller/extension/extension/controllerregistration"
	"github.com/gardener/gardener/pkg/utils/oci"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What is to be installed: an Extension, or what a garden has of it. Charts are folders by the reference by which they are pulled,
// without the host that references to charts have in the objects.
type toInstall struct {
	Charts    map[string]string `json:"charts"`
	Host      string            `json:"host"`
	Extension json.RawMessage   `json:"extension"`

	ControllerInstallation *gardencorev1beta1.ControllerInstallation `json:"controllerInstallation"`
	ControllerRegistration *gardencorev1beta1.ControllerRegistration `json:"controllerRegistration"`
	ControllerDeployment   json.RawMessage                           `json:"controllerDeployment"`
	Seed                   *gardencorev1beta1.Seed                   `json:"seed"`
}

// What is to be applied, YAML by ManagedResource, and what the ControllerInstallation says.
type installed struct {
	ManagedResources map[string][]string           `json:"managedResources"`
	Conditions       []gardencorev1beta1.Condition `json:"conditions"`
	Seconds          float64                       `json:"seconds"`
}

const gardenNamespace = "garden"

func install(question toInstall) (installed, error) {
	host, stop, err := serveCharts(question.Charts)
	if err != nil {
		return installed{}, err
	}
	defer stop()
	served := func(document json.RawMessage) []byte {
		return bytes.ReplaceAll(document, []byte(question.Host+"/charts/"), []byte(host+"/charts/"))
	}
	begin := time.Now()
	var result installed
	if question.Extension != nil {
		result, err = installExtension(served(question.Extension))
	} else {
		result, err = installController(&question, served(question.ControllerDeployment))
	}
	result.Seconds = time.Since(begin).Seconds()
	return result, err
}

// installExtension is gardener-operator: webhooks in the runtime cluster and the garden, a registration for the seeds.
func installExtension(document []byte) (installed, error) {
	extension := &operatorv1alpha1.Extension{}
	if err := json.Unmarshal(document, extension); err != nil {
		return installed{}, err
	}
	var (
		ctx     = context.Background()
		cluster = applied(operatorclient.RuntimeScheme)
		virtual = applied(operatorclient.VirtualScheme)
		webhook = admission.New(clientSet(cluster), &events.FakeRecorder{}, gardenNamespace, oci.NewHelmRegistry(cluster))
	)
	if err := webhook.Reconcile(ctx, logr.Discard(), clientSet(virtual), "generic-token-kubeconfig", extension); err != nil {
		return installed{}, fmt.Errorf("admission: %w", err)
	}
	registration := controllerregistration.New(cluster, &events.FakeRecorder{}, gardenNamespace)
	if err := registration.Reconcile(ctx, logr.Discard(), extension); err != nil {
		return installed{}, fmt.Errorf("registration: %w", err)
	}
	resources, err := managedResources(ctx, cluster)
	return installed{ManagedResources: resources}, err
}

// installController is gardenlet: the chart for a seed, and what it says of that.
func installController(question *toInstall, document []byte) (installed, error) {
	deployment := &gardencorev1.ControllerDeployment{}
	if err := json.Unmarshal(document, deployment); err != nil {
		return installed{}, err
	}
	installation := question.ControllerInstallation
	garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(installation).
		WithObjects(installation, question.ControllerRegistration, deployment, question.Seed).Build()
	var (
		ctx     = context.Background()
		seed    = applied(kubernetes.SeedScheme)
		request = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(installation)}
	)
	installs := &controllerinstallation.Reconciler{
		GardenClient:          garden,
		GardenConfig:          &rest.Config{Host: "https://garden.example.org"},
		SeedClientSet:         clientSet(seed),
		HelmRegistry:          oci.NewHelmRegistry(garden),
		Clock:                 clock.RealClock{},
		Identity:              &gardencorev1beta1.Gardener{Version: "v1.150.0"},
		GardenClusterIdentity: "garden-of-tests",
		GardenNamespace:       gardenNamespace,
	}
	if _, err := installs.Reconcile(ctx, request); err != nil {
		return installed{}, err
	}
	cares := &care.Reconciler{
		GardenClient: garden,
		SeedClient:   seed,
		Config: gardenletconfigv1alpha1.ControllerInstallationCareControllerConfiguration{
			SyncPeriod: &metav1.Duration{Duration: time.Minute},
		},
		Clock:                    clock.RealClock{},
		ManagedResourceNamespace: gardenNamespace,
	}
	if _, err := cares.Reconcile(ctx, request); err != nil {
		return installed{}, err
	}
	if err := garden.Get(ctx, request.NamespacedName, installation); err != nil {
		return installed{}, err
	}
	resources, err := managedResources(ctx, seed)
	return installed{ManagedResources: resources, Conditions: installation.Status.Conditions}, err
}

// applied is a cluster in memory whose gardener-resource-manager has applied everything at once.
func applied(scheme *runtime.Scheme) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, cluster client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if resource, ok := object.(*resourcesv1alpha1.ManagedResource); ok {
				is := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
					return gardencorev1beta1.Condition{Type: kind, Status: status}
				}
				resource.Status.Conditions = []gardencorev1beta1.Condition{
					is(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue),
					is(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionTrue),
					is(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionFalse),
				}
			}
			return cluster.Create(ctx, object, options...)
		},
	}).Build()
}

func clientSet(cluster client.Client) kubernetes.Interface {
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"})
	return fakekubernetes.NewClientSetBuilder().WithClient(cluster).WithChartRenderer(renderer).Build()
}

// managedResources are the documents of all ManagedResources.
func managedResources(ctx context.Context, cluster client.Client) (map[string][]string, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := cluster.List(ctx, list); err != nil {
		return nil, err
	}
	documents := map[string][]string{}
	for _, resource := range list.Items {
		for _, reference := range resource.Spec.SecretRefs {
			secret := &corev1.Secret{}
			if err := cluster.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: reference.Name}, secret); err != nil {
				return nil, err
			}
			for key, value := range secret.Data {
				text, err := unpacked(key, value)
				if err != nil {
					return nil, err
				}
				documents[resource.Name] = append(documents[resource.Name], text)
			}
		}
	}
	return documents, nil
}

func unpacked(key string, value []byte) (string, error) {
	if !strings.HasSuffix(key, resourcesv1alpha1.BrotliCompressionSuffix) {
		return string(value), nil
	}
	text, err := io.ReadAll(brotli.NewReader(bytes.NewReader(value)))
	return string(text), err
}
