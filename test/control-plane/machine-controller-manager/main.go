// Command machine-controller-manager is the real machine-controller-manager with a cloud made for tests.
//
// The first argument says which of its two halves this process is; they cannot share one, because both
// register the same metrics:
//
//	machine-controller-manager machine-deployments [flags]   MachineDeployments and MachineSets
//	machine-controller-manager machines            [flags]   Machines, on the cloud of cloud.go
//
// The flags are those of machine-controller-manager; the second half also knows --hasten-deletion.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app"
	"github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app/options"
	machineapp "github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	machineoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
)

func main() {
	defer logs.FlushLogs()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("which half: machine-deployments or machines?")
	}
	half := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)

	switch half {
	case "machine-deployments":
		server := options.NewMCMServer()
		server.AddFlags(pflag.CommandLine)
		flag.InitFlags()
		logs.InitLogs()
		return app.Run(server)
	case "machines":
		server := machineoptions.NewMCServer()
		server.AddFlags(pflag.CommandLine)
		hasten := pflag.Bool("hasten-deletion", false, "Wake the machine controller after each step of a deletion instead of letting it wait 5s.")
		flag.InitFlags()
		logs.InitLogs()
		return runMachines(server, *hasten)
	default:
		return fmt.Errorf("which half: machine-deployments or machines? Not %q", half)
	}
}

// runMachines starts the cloud and what happens on its VMs, then the machine controller.
func runMachines(server *machineoptions.MCServer, hasten bool) error {
	clients, err := newClients(server)
	if err != nil {
		return err
	}
	if err := clients.watchMachines(server.Namespace, hasten); err != nil {
		return err
	}
	return machineapp.Run(server, &cloud{nodes: clients.nodes})
}
