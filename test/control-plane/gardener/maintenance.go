package main

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/controllermanager/controller/shoot/maintenance"
	"github.com/gardener/gardener/pkg/controllermanager/features"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Shoot, its profile, and the moments at which its controller wakes up.
type maintained struct {
	CloudProfile gardencorev1beta1.CloudProfile `json:"cloudProfile"`
	Shoot        gardencorev1beta1.Shoot        `json:"shoot"`
	Times        []metav1.Time                  `json:"times"`
}

// What is of interest after a run.
type maintainedState struct {
	Error           string                             `json:"error,omitempty"`
	Kubernetes      string                             `json:"kubernetes"`
	Pools           []maintainedPool                   `json:"pools"`
	LastMaintenance *gardencorev1beta1.LastMaintenance `json:"lastMaintenance,omitempty"`
}

type maintainedPool struct {
	Kubernetes *string `json:"kubernetes"`
	Image      *string `json:"image"`
}

func registerFeatureGates() {
	features.RegisterFeatureGates()
}

// maintain wakes Gardener's controller up at each of the moments. A panic ends a history: a controller that crashes is started again by others.
func maintain(question maintained) ([]maintainedState, error) {
	var (
		ctx    = context.Background()
		clock  = testclock.NewFakeClock(time.Time{})
		states []maintainedState
	)
	kubernetes.GardenScheme.Default(&question.CloudProfile)
	kubernetes.GardenScheme.Default(&question.Shoot)
	garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithObjects(&question.CloudProfile, &question.Shoot).Build()
	controller := &maintenance.Reconciler{Client: garden, Clock: clock, Recorder: &events.FakeRecorder{}}
	key := client.ObjectKeyFromObject(&question.Shoot)
	written := question.CloudProfile.DeepCopy()
	for _, moment := range question.Times {
		clock.SetTime(moment.Time)
		// A stage that begins at this very moment has not begun. Of two seconds, one outlasts the run, and one is lost
		// to times of objects, which are whole seconds.
		if err := moveProfile(ctx, garden, written, time.Since(moment.Time)+2*time.Second); err != nil {
			return nil, err
		}
		_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		shoot := &gardencorev1beta1.Shoot{}
		if err := garden.Get(ctx, key, shoot); err != nil {
			return nil, err
		}
		states = append(states, stateOf(shoot, err))
	}
	return states, nil
}

// moveProfile moves all dates of the profile: the stage of a version is told by the machine's clock, whatever the controller's is.
func moveProfile(ctx context.Context, garden client.Client, written *gardencorev1beta1.CloudProfile, by time.Duration) error {
	stored := &gardencorev1beta1.CloudProfile{}
	if err := garden.Get(ctx, client.ObjectKeyFromObject(written), stored); err != nil {
		return err
	}
	moved := written.DeepCopy()
	for i := range moved.Spec.Kubernetes.Versions {
		moveDates(&moved.Spec.Kubernetes.Versions[i], by)
	}
	for i := range moved.Spec.MachineImages {
		for j := range moved.Spec.MachineImages[i].Versions {
			moveDates(&moved.Spec.MachineImages[i].Versions[j].ExpirableVersion, by)
		}
	}
	stored.Spec = moved.Spec
	return garden.Update(ctx, stored)
}

func moveDates(version *gardencorev1beta1.ExpirableVersion, by time.Duration) {
	move := func(date *metav1.Time) *metav1.Time {
		if date == nil {
			return nil
		}
		return &metav1.Time{Time: date.Add(by)}
	}
	version.ExpirationDate = move(version.ExpirationDate)
	for i := range version.Lifecycle {
		version.Lifecycle[i].StartTime = move(version.Lifecycle[i].StartTime)
	}
}

func stateOf(shoot *gardencorev1beta1.Shoot, err error) maintainedState {
	state := maintainedState{Kubernetes: shoot.Spec.Kubernetes.Version, LastMaintenance: shoot.Status.LastMaintenance}
	if err != nil {
		state.Error = err.Error()
	}
	for _, pool := range shoot.Spec.Provider.Workers {
		of := maintainedPool{}
		if pool.Kubernetes != nil {
			of.Kubernetes = pool.Kubernetes.Version
		}
		if pool.Machine.Image != nil {
			of.Image = pool.Machine.Image.Version
		}
		state.Pools = append(state.Pools, of)
	}
	return state
}
