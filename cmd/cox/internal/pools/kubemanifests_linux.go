package pools

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/server/daemon"
)

// kubeRights is the manifest of a pool's roles.
func kubeRights(pool string, settings json.RawMessage, who string) (string, error) {
	return daemon.KubeRights(pool, settings, who)
}

// kubePolicy is the manifest of the policy that keeps others off a pool's nodes.
func kubePolicy(pool string, settings json.RawMessage, who string) (string, error) {
	return daemon.KubePolicy(pool, settings, who)
}
