package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"github.com/gardener/gardener/pkg/api"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	gardencoreinformers "github.com/gardener/gardener/pkg/client/core/informers/externalversions"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/component/extensions/worker"
	"github.com/gardener/gardener/plugin/pkg/shoot/mutator"
	"github.com/gardener/gardener/plugin/pkg/shoot/resourcereservation"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A Shoot as somebody writes it, with what the garden and the seed have of it so far.
type writtenShoot struct {
	CloudProfile gardencorev1beta1.CloudProfile `json:"cloudProfile"`
	Shoot        gardencorev1beta1.Shoot        `json:"shoot"`
	// The Shoot as it is stored, nil where it is new.
	Stored *gardencorev1beta1.Shoot `json:"stored"`
	// The Worker so far, nil where there is none.
	Worker *extensionsv1alpha1.WorkerSpec `json:"worker"`
}

// What becomes of it: the stored Shoot, and the Worker for it.
type translated struct {
	Stored json.RawMessage               `json:"stored"`
	Worker extensionsv1alpha1.WorkerSpec `json:"worker"`
}

// A translator is the API server and gardenlet, as far as they make a Worker from a Shoot.
type translator struct {
	plugins  []admission.MutationInterface
	profiles cache.Store
}

func newTranslator() (*translator, error) {
	mutate, err := mutator.New()
	if err != nil {
		return nil, err
	}
	informers := gardencoreinformers.NewSharedInformerFactory(nil, 0)
	reserve := resourcereservation.New(false, labels.Nothing()).(*resourcereservation.ResourceReservation)
	reserve.SetCoreInformerFactory(informers)
	mutate.SetCoreInformerFactory(informers)
	isReady := func() bool { return true }
	reserve.AssignReadyFunc(isReady)
	mutate.AssignReadyFunc(isReady)
	return &translator{
		plugins:  []admission.MutationInterface{mutate, reserve},
		profiles: informers.Core().V1beta1().CloudProfiles().Informer().GetStore(),
	}, nil
}

func (t *translator) answer(question writtenShoot) (translated, error) {
	if err := t.profiles.Replace([]any{&question.CloudProfile}, ""); err != nil {
		return translated{}, err
	}
	stored, err := t.admit(&question.Shoot, question.Stored)
	if err != nil {
		return translated{}, fmt.Errorf("admission: %w", err)
	}
	made, err := deployWorker(stored, &question)
	if err != nil {
		return translated{}, err
	}
	text, err := json.Marshal(stored)
	return translated{Stored: text, Worker: made.Spec}, err
}

// admit does what the API server does with a Shoot before it is stored: defaults, then the plugins that change Shoots.
func (t *translator) admit(written, stored *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	var (
		created   = stored == nil
		old       runtime.Object
		operation = admission.Create
	)
	shoot, err := internal(written)
	if err != nil {
		return nil, err
	}
	if !created {
		operation = admission.Update
		if old, err = internal(stored); err != nil {
			return nil, err
		}
	}
	attributes := admission.NewAttributesRecord(shoot, old, core.Kind("Shoot").WithVersion("version"), written.Namespace, written.Name,
		core.Resource("shoots").WithVersion("version"), "", operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "owner"})
	for _, plugin := range t.plugins {
		if err := plugin.Admit(context.Background(), attributes, nil); err != nil {
			return nil, err
		}
	}
	result := &gardencorev1beta1.Shoot{}
	if err := api.Scheme.Convert(shoot, result, nil); err != nil {
		return nil, err
	}
	api.Scheme.Default(result)
	return result, nil
}

func internal(shoot *gardencorev1beta1.Shoot) (*core.Shoot, error) {
	shoot = shoot.DeepCopy()
	api.Scheme.Default(shoot)
	result := &core.Shoot{}
	return result, api.Scheme.Convert(shoot, result, nil)
}

// deployWorker does what gardenlet does for a Shoot, with the answer that an extension for operating systems usually gives.
func deployWorker(shoot *gardencorev1beta1.Shoot, question *writtenShoot) (*extensionsv1alpha1.Worker, error) {
	var (
		ctx     = context.Background()
		spec    = &shoot.Spec
		objects = fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme)
	)
	if question.Worker != nil {
		objects = objects.WithObjects(&extensionsv1alpha1.Worker{
			ObjectMeta: metav1.ObjectMeta{Name: shoot.Name, Namespace: shoot.Status.TechnicalID}, Spec: *question.Worker,
		})
	}
	version, err := semver.NewVersion(spec.Kubernetes.Version)
	if err != nil {
		return nil, err
	}
	configs, err := operatingSystemConfigs(shoot, version)
	if err != nil {
		return nil, err
	}
	seed := objects.Build()
	component := worker.New(logr.Discard(), seed, &worker.Values{
		Namespace:         shoot.Status.TechnicalID,
		Name:              shoot.Name,
		Type:              spec.Provider.Type,
		Region:            spec.Region,
		Workers:           spec.Provider.Workers,
		KubernetesVersion: version,
		KubeletConfig:     spec.Kubernetes.Kubelet,
		MachineTypes:      question.CloudProfile.Spec.MachineTypes,
		WorkerPoolNameToOperatingSystemConfigsMap: configs,
		NodeLocalDNSEnabled:                       v1beta1helper.IsNodeLocalDNSEnabled(spec.SystemComponents),
	}, 0, 0, 0)
	if err := component.Deploy(ctx); err != nil {
		return nil, err
	}
	made := &extensionsv1alpha1.Worker{}
	return made, seed.Get(ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: shoot.Name}, made)
}

// operatingSystemConfigs names the Secrets of each pool's machines.
func operatingSystemConfigs(shoot *gardencorev1beta1.Shoot, version *semver.Version) (map[string]*operatingsystemconfig.OperatingSystemConfigs, error) {
	var (
		spec      = &shoot.Spec
		configs   = map[string]*operatingsystemconfig.OperatingSystemConfigs{}
		rotation  *gardencorev1beta1.ShootCredentialsRotation
		kubeProxy = spec.Kubernetes.KubeProxy
	)
	if shoot.Status.Credentials != nil {
		rotation = shoot.Status.Credentials.Rotation
	}
	if kubeProxy == nil {
		kubeProxy = &gardencorev1beta1.KubeProxyConfig{}
	}
	for _, pool := range spec.Provider.Workers {
		key := "gardener-node-agent-" + pool.Name
		if !v1beta1helper.IsUpdateStrategyInPlace(pool.UpdateStrategy) {
			effective, err := v1beta1helper.CalculateEffectiveKubernetesVersion(version, pool.Kubernetes)
			if err != nil {
				return nil, err
			}
			kubelet := v1beta1helper.CalculateEffectiveKubeletConfiguration(spec.Kubernetes.Kubelet, pool.Kubernetes)
			key = operatingsystemconfig.Key(effective, rotation, &pool, v1beta1helper.IsNodeLocalDNSEnabled(spec.SystemComponents), kubelet, kubeProxy)
		}
		secret := "osc-result-" + key + "-init"
		configs[pool.Name] = &operatingsystemconfig.OperatingSystemConfigs{
			Init: operatingsystemconfig.Data{GardenerNodeAgentSecretName: key, SecretName: &secret},
		}
	}
	return configs, nil
}
