//go:build !linux

package pools

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// kubeRights is not there: this is the client alone.
func kubeRights(string, json.RawMessage, string) (string, error) {
	return "", fault.New(fault.Unsupported, "this client cannot write roles").Advise("call it on the server's machine")
}

// kubePolicy is not there: this is the client alone.
func kubePolicy(string, json.RawMessage, string) (string, error) {
	return "", fault.New(fault.Unsupported, "this client cannot write policies").Advise("call it on the server's machine")
}
