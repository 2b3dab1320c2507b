package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// failTag is the tag in a MachineClass' providerSpec whose value, the name of a code such as
	// ResourceExhausted, is what the cloud answers instead of making a VM.
	failTag = "demo.fail"
	// noQuota is the value of the label failTag of a pool, which its machines have, for a cloud without quota left.
	noQuota = "QuotaExceeded"
	// noQuotaMessage is what that cloud answers.
	noQuotaMessage = `Code="QuotaExceeded" Message="Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Current Limit: 16, Current Usage: 16, Additional Required: 4."`
	// classAnnotation tells on a Node the MachineClass its VM was made from.
	classAnnotation = "cloud.test/machine-class"
	// providerIDPrefix starts the ID of every VM; namespace and machine name follow.
	providerIDPrefix = "memory:///"
)

// cloud is a driver for machine-controller-manager whose VMs are nothing but Nodes of the target cluster:
// a VM exists as long as its Node does and is not being deleted. Having no memory besides, it survives a restart.
type cloud struct {
	nodes corev1client.NodeInterface
}

var _ driver.Driver = (*cloud)(nil)

// CreateMachine makes a VM, which is to say a Node that is not ready yet (see machines.go), unless the class asks for a failure.
func (c *cloud) CreateMachine(ctx context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	class, machine := request.MachineClass, request.Machine
	if machine.Spec.NodeTemplateSpec.Labels[failTag] == noQuota {
		return nil, status.Error(codes.ResourceExhausted, noQuotaMessage)
	}
	if code := wantedFailure(class); code != codes.OK {
		return nil, status.Error(code, fmt.Sprintf("class %q asks for this failure with its tag %q", class.Name, failTag))
	}
	if len(request.Secret.Data["userData"]) == 0 {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("the secrets of class %q hold no userData", class.Name))
	}
	if _, err := c.nodes.Create(ctx, newNode(machine, class), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(machine), NodeName: machine.Name}, nil
}

// InitializeMachine has nothing to do.
func (c *cloud) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "VMs of this cloud need no initialization")
}

// DeleteMachine removes the VM, if it is there.
func (c *cloud) DeleteMachine(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := c.nodes.Delete(ctx, request.Machine.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus tells whether the VM exists.
func (c *cloud) GetMachineStatus(ctx context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	node, err := c.nodes.Get(ctx, request.Machine.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && node.DeletionTimestamp != nil:
		return nil, status.Error(codes.NotFound, fmt.Sprintf("no VM for machine %q", request.Machine.Name))
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &driver.GetMachineStatusResponse{ProviderID: node.Spec.ProviderID, NodeName: node.Name}, nil
}

// ListMachines tells the VMs made from a class, by their IDs.
func (c *cloud) ListMachines(ctx context.Context, request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	nodes, err := c.nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	class, machines := request.MachineClass, map[string]string{}
	for _, node := range nodes.Items {
		if node.DeletionTimestamp == nil && node.Annotations[classAnnotation] == class.Name &&
			strings.HasPrefix(node.Spec.ProviderID, providerIDPrefix+class.Namespace+"/") {
			machines[node.Spec.ProviderID] = node.Name
		}
	}
	return &driver.ListMachinesResponse{MachineList: machines}, nil
}

// GetVolumeIDs knows no volumes.
func (c *cloud) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{VolumeIDs: []string{}}, nil
}

func providerID(machine *v1alpha1.Machine) string {
	return providerIDPrefix + machine.Namespace + "/" + machine.Name
}

// wantedFailure is the code the class asks for, OK if none.
func wantedFailure(class *v1alpha1.MachineClass) codes.Code {
	var spec struct {
		Tags map[string]string `json:"tags"`
	}
	// Another provider's tags may be a list: no failure is asked for then.
	if err := json.Unmarshal(class.ProviderSpec.Raw, &spec); err != nil {
		return codes.OK
	}
	if name, asked := spec.Tags[failTag]; asked {
		return codes.StringToCode(name)
	}
	return codes.OK
}

// newNode is the Node a VM registers: named like its machine, sized as the class announces it.
func newNode(machine *v1alpha1.Machine, class *v1alpha1.MachineClass) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        machine.Name,
			Labels:      map[string]string{corev1.LabelHostname: machine.Name},
			Annotations: map[string]string{classAnnotation: class.Name},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID(machine)},
	}
	if template := class.NodeTemplate; template != nil {
		node.Labels[corev1.LabelInstanceTypeStable] = template.InstanceType
		node.Labels[corev1.LabelTopologyRegion] = template.Region
		node.Labels[corev1.LabelTopologyZone] = template.Zone
		node.Status.Capacity = template.Capacity.DeepCopy()
		node.Status.Allocatable = template.Capacity.DeepCopy()
	}
	return node
}
