// Enforces the NetworkPolicies of a cluster on one node, beside any network plugin, with the engine of sigs.k8s.io/kube-network-policies: the
// kernel hands the first packet of each connection that a node forwards to queue 100, and this program says whether it may pass. Its own rule
// for that needs nftables with `queue`, which not every kernel has, so the pod that runs it adds one with iptables.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	watched := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(
		client,
		watched.Networking().V1().NetworkPolicies(),
		watched.Core().V1().Namespaces(),
		watched.Core().V1().Pods(),
		nil, nil, nil, nil,
		networkpolicy.Config{QueueID: 100, FailOpen: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	watched.Start(ctx.Done())
	if err := controller.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
