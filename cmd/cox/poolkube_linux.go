package main

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/serve"
)

// kubeRights is the manifest of a pool's roles.
func kubeRights(pool string, settings json.RawMessage, who string) (string, error) {
	return serve.KubeRights(pool, settings, who)
}

// kubePolicy is the manifest of the policy that keeps others off a pool's nodes.
func kubePolicy(pool string, settings json.RawMessage, who string) (string, error) {
	return serve.KubePolicy(pool, settings, who)
}
