package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Fake is a node without a machine: kwok says that it is well, and that each pod bound to it
// runs, at once and until it is deleted. What its pods would do nobody does.
type Fake struct {
	Name     string
	Labels   map[string]string
	Capacity map[string]string // besides pods; empty: 64 CPUs, 512 GiB and 8 nvidia.com/gpu
}

// Fake adds nodes without machines, and returns when all can be given pods.
func (l *Lab) Fake(t testing.TB, nodes ...Fake) {
	t.Helper()
	if err := l.addFakes(t.Context(), nodes); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
}

func (l *Lab) addFakes(ctx context.Context, nodes []Fake) error {
	l.mu.Lock()
	runs := l.daemons["kwok"] != nil
	l.fakes++
	batch := strconv.Itoa(l.fakes)
	l.mu.Unlock()
	if !runs {
		if err := l.startDaemon(ctx, l.kwokDaemon()); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failed := make([]error, len(nodes))
	turn := make(chan struct{}, 8)
	for i, n := range nodes {
		turn <- struct{}{}
		all.Go(func() {
			if err := l.createObject(ctx, "/api/v1/nodes", n.nodeObject(batch)); err != nil {
				failed[i] = fmt.Errorf("node %s: %w", n.Name, err)
			}
			<-turn
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return testcluster.Await(ctx, "fake nodes", func() bool {
		var all struct {
			Items []struct {
				Spec struct {
					Taints []struct{ Key string }
				}
			}
		}
		text, err := l.readPath(ctx, "/api/v1/nodes?labelSelector="+batchLabel+"%3D"+batch)
		if err != nil || json.Unmarshal(text, &all) != nil || len(all.Items) < len(nodes) {
			return false
		}
		for _, n := range all.Items {
			if len(n.Spec.Taints) > 0 { // not-ready, until the controller has seen its state
				return false
			}
		}
		return true
	})
}

const (
	fakeLabel  = "lab/fake"  // what kwok knows its nodes by
	batchLabel = "lab/batch" // with which call it came: thousands of others are not looked at again
)

// kwokDaemon is the daemon that lives for nodes without machines.
func (l *Lab) kwokDaemon() *daemon {
	return &daemon{
		name: "kwok",
		words: []string{
			filepath.Join(l.programs, "kwok"), "--config=" + filepath.Join(l.programs, "kwok-stages.yaml"), "--kubeconfig=" + l.Kubeconfig(),
			"--manage-all-nodes=false", "--manage-nodes-with-label-selector=" + fakeLabel, "--node-lease-duration-seconds=200", "--node-ip=127.0.0.1",
			"--server-address=0.0.0.0:10247",
		},
		up: func(ctx context.Context) bool {
			return probeURL(ctx, nil, "http://"+l.wire.server+":10247/healthz") == nil
		},
	}
}

// nodeObject is the node as the apiserver is told of it.
func (n Fake) nodeObject(batch string) map[string]any {
	labels := map[string]string{fakeLabel: "", batchLabel: batch, "kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for k, v := range n.Labels {
		labels[k] = v
	}
	capacity := map[string]string{"pods": "110"}
	if len(n.Capacity) == 0 {
		capacity["cpu"], capacity["memory"], capacity["nvidia.com/gpu"] = "64", "512Gi", "8"
	}
	for k, v := range n.Capacity {
		capacity[k] = v
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": n.Name, "labels": labels},
		"status": map[string]any{"capacity": capacity, "allocatable": capacity},
	}
}

// createObject makes an object.
func (l *Lab) createObject(ctx context.Context, path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = requestURL(ctx, l.admin, http.MethodPost, l.Server()+path, text)
	return err
}
