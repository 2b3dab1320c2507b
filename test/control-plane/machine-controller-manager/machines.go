package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// clients are what the cloud needs of the two clusters (which may be one): Machines of the control cluster,
// Nodes of the target cluster.
type clients struct {
	machines versioned.Interface
	nodes    corev1client.NodeInterface
}

func newClients(server *options.MCServer) (*clients, error) {
	load := func(kubeconfig string) (*rest.Config, error) {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("reading kubeconfig %q: %w", kubeconfig, err)
		}
		config.QPS, config.Burst = server.KubeAPIQPS, int(server.KubeAPIBurst)
		return rest.AddUserAgent(config, "cloud"), nil
	}
	target, err := load(server.TargetKubeconfig)
	if err != nil {
		return nil, err
	}
	control := target
	if server.ControlKubeconfig != "" {
		if control, err = load(server.ControlKubeconfig); err != nil {
			return nil, err
		}
	}
	machines, err := versioned.NewForConfig(control)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	return &clients{machines: machines, nodes: kube.CoreV1().Nodes()}, nil
}

// watchMachines does what happens on VMs by itself: the kubelet of a new one reports ready.
// With hasten it also shortens deletions, see hastenDeletion.
func (c *clients) watchMachines(namespace string, hasten bool) error {
	factory := externalversions.NewSharedInformerFactoryWithOptions(c.machines, 0, externalversions.WithNamespace(namespace))
	machines := factory.Machine().V1alpha1().Machines()
	isPending := func(name string) bool {
		machine, err := machines.Lister().Machines(namespace).Get(name)
		return err == nil && machine.Status.CurrentStatus.Phase == v1alpha1.MachinePending && machine.DeletionTimestamp == nil
	}
	var reporting sync.Map
	observe := func(machine *v1alpha1.Machine) {
		switch phase := machine.Status.CurrentStatus.Phase; {
		case phase == v1alpha1.MachinePending && machine.DeletionTimestamp == nil:
			if _, isReporting := reporting.LoadOrStore(machine.Name, true); !isReporting {
				go func() {
					defer reporting.Delete(machine.Name)
					c.reportReady(machine.Name, isPending)
				}()
			}
		case phase == v1alpha1.MachineTerminating && hasten:
			go c.hastenDeletion(machine)
		}
	}
	_, err := machines.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) { observe(added.(*v1alpha1.Machine)) },
		UpdateFunc: func(before, after any) {
			// Only a step forward counts: hastenDeletion's own write must not call it again.
			old, machine := before.(*v1alpha1.Machine), after.(*v1alpha1.Machine)
			if old.Status.CurrentStatus.Phase != machine.Status.CurrentStatus.Phase ||
				old.Status.LastOperation.Description != machine.Status.LastOperation.Description {
				observe(machine)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(nil)
	return nil
}

// reportReady writes the heartbeats of a kubelet until the machine has joined, and at least two. The machine controller ignores
// a Node that is added, and misses a change while its cache is behind ours. Without another heartbeat, it would look at the
// machine again after ten minutes. A heartbeat can also fail because the machine controller changes the Node at the same time.
func (c *clients) reportReady(name string, isPending func(string) bool) {
	for beats := 0; beats < 2 || isPending(name); beats++ {
		err := c.heartbeat(context.Background(), name)
		if err != nil && !apierrors.IsNotFound(err) {
			klog.Errorf("heartbeat of node %q: %v", name, err)
		}
		// Heartbeats have a resolution of one second, and each must differ from the last.
		time.Sleep(1100 * time.Millisecond)
	}
}

func (c *clients) heartbeat(ctx context.Context, name string) error {
	node, err := c.nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		since := now
		for _, before := range node.Status.Conditions {
			if before.Type == kind && before.Status == status {
				since = before.LastTransitionTime
			}
		}
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: since}
	}
	// Of the types that machine-controller-manager's --node-conditions takes for illness, one is reported as absent.
	node.Status.Conditions = []corev1.NodeCondition{
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
	_, err = c.nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// hastenDeletion wakes the machine controller after a step of a deletion. A deletion has six of them, and the
// controller waits 5s after each (a constant) unless the machine's spec changes meanwhile. So this changes a field
// that no longer matters to a machine on its way out.
func (c *clients) hastenDeletion(machine *v1alpha1.Machine) {
	timeout := time.Hour + time.Duration(machine.Generation)*time.Second
	patch := fmt.Sprintf(`{"spec":{"creationTimeout":%q}}`, timeout)
	_, err := c.machines.MachineV1alpha1().Machines(machine.Namespace).
		Patch(context.Background(), machine.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.Errorf("waking the controller for machine %q: %v", machine.Name, err)
	}
}
