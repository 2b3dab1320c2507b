package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/component/extensions/worker"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A step of one of gardenlet's flows, for the Worker of a Shoot.
type step struct {
	// deploy, published, wait, migrate, wait-migrate, keep, restore, destroy, wait-cleanup, health or cluster
	Do string `json:"do"`
	// The namespace in the seed.
	Namespace string `json:"namespace"`
	// The stored Shoot with its profile, nil where they are those of the step before.
	Shoot        *gardencorev1beta1.Shoot        `json:"shoot"`
	CloudProfile *gardencorev1beta1.CloudProfile `json:"cloudProfile"`
	// What is taken over from a Worker that a test has: names of Secrets by pool, key, and what the infrastructure is.
	Worker *extensionsv1alpha1.WorkerSpec `json:"worker"`
}

// How a step ended.
type stepEnd struct {
	Error              string                                 `json:"error,omitempty"`
	Seconds            float64                                `json:"seconds"`
	MachineDeployments []extensionsv1alpha1.MachineDeployment `json:"machineDeployments,omitempty"`
}

// A workerClient is gardenlet as far as it has to do with Workers, with a garden in memory that keeps their state.
type workerClient struct {
	seed     client.Client
	garden   client.Client
	interval time.Duration
	timeout  time.Duration
	shoot    *gardencorev1beta1.Shoot
	// gardenlet makes one anew for every flow; deploy and restore begin one here.
	component worker.Interface
}

func newWorkerClient(arguments []string) (*workerClient, error) {
	flags := flag.NewFlagSet("worker-client", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how the seed is reached")
	interval := flags.Duration("interval", worker.DefaultInterval, "how often is asked whether a Worker is ready")
	timeout := flags.Duration("timeout", worker.DefaultTimeout, "how long is waited for a Worker")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	seed, err := client.New(config, client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return nil, err
	}
	garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).Build()
	return &workerClient{seed: seed, garden: garden, interval: *interval, timeout: *timeout}, nil
}

func (c *workerClient) answer(question step) (stepEnd, error) {
	begin := time.Now()
	err := c.do(context.Background(), &question)
	end := stepEnd{Seconds: time.Since(begin).Seconds()}
	if err != nil {
		end.Error = err.Error()
	}
	if c.component != nil {
		end.MachineDeployments = c.component.MachineDeployments()
	}
	return end, nil
}

func (c *workerClient) do(ctx context.Context, step *step) error {
	if step.Shoot != nil {
		c.shoot = step.Shoot
		component, err := c.newComponent(step)
		if err != nil {
			return err
		}
		c.component = component
	}
	if c.component == nil {
		return fmt.Errorf("which Shoot?")
	}
	switch step.Do {
	case "cluster":
		return extensions.SyncClusterResourceToSeed(ctx, c.seed, step.Namespace, c.shoot, step.CloudProfile, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}})
	case "deploy":
		return c.component.Deploy(ctx)
	case "published":
		return c.component.WaitUntilWorkerStatusMachineDeploymentsUpdated(ctx)
	case "wait":
		return c.component.Wait(ctx)
	case "migrate":
		return c.component.Migrate(ctx)
	case "wait-migrate":
		return c.component.WaitMigrate(ctx)
	case "keep":
		return shootstate.Deploy(ctx, clock.RealClock{}, c.garden, c.seed, c.shoot, step.Namespace, true)
	case "restore":
		state := &gardencorev1beta1.ShootState{}
		if err := c.garden.Get(ctx, client.ObjectKeyFromObject(c.shoot), state); err != nil {
			return err
		}
		return c.component.Restore(ctx, state)
	case "destroy":
		return c.component.Destroy(ctx)
	case "wait-cleanup":
		return c.component.WaitCleanup(ctx)
	case "health":
		made, err := c.component.Get(ctx)
		if err != nil {
			return err
		}
		return health.CheckExtensionObject(made)
	default:
		return fmt.Errorf("no step %q", step.Do)
	}
}

// newComponent takes names of Secrets from the Worker that it is given, so that they are those of Secrets that the test has made.
func (c *workerClient) newComponent(step *step) (worker.Interface, error) {
	spec := &step.Shoot.Spec
	version, err := semver.NewVersion(spec.Kubernetes.Version)
	if err != nil {
		return nil, err
	}
	configs := map[string]*operatingsystemconfig.OperatingSystemConfigs{}
	for _, pool := range step.Worker.Pools {
		configs[pool.Name] = &operatingsystemconfig.OperatingSystemConfigs{
			Init: operatingsystemconfig.Data{GardenerNodeAgentSecretName: *pool.NodeAgentSecretName, SecretName: &pool.UserDataSecretRef.Name},
		}
	}
	var status *runtime.RawExtension
	if given := step.Worker.InfrastructureProviderStatus; given != nil {
		status = &runtime.RawExtension{Raw: json.RawMessage(given.Raw)}
	}
	return worker.New(logr.Discard(), c.seed, &worker.Values{
		Namespace:                    step.Namespace,
		Name:                         step.Shoot.Name,
		Type:                         spec.Provider.Type,
		Region:                       spec.Region,
		Workers:                      spec.Provider.Workers,
		KubernetesVersion:            version,
		KubeletConfig:                spec.Kubernetes.Kubelet,
		MachineTypes:                 step.CloudProfile.Spec.MachineTypes,
		SSHPublicKey:                 step.Worker.SSHPublicKey,
		InfrastructureProviderStatus: status,
		WorkerPoolNameToOperatingSystemConfigsMap: configs,
	}, c.interval, worker.DefaultSevereThreshold, c.timeout), nil
}
