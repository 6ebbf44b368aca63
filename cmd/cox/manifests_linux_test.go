package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/server/config"
)

// manifests is the folder of what runs a server in a cluster.
const manifests = "../../deploy/kubernetes"

// TestDocumentRoles keeps the roles of the manifests what the pool of their configuration
// needs, as cox pool add --print-rbac says it.
// Seen to fail with "watch" taken from a role of the file.
func TestDocumentRoles(t *testing.T) {
	c, _, err := config.Load(manifests + "/cox.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Pools) != 1 || c.Jobs.Pool != c.Pools[0].Name || c.Pools[0].Settings["inside"] != true {
		t.Fatalf("the pools are %+v, and jobs go to %s", c.Pools, c.Jobs.Pool)
	}
	settings, err := json.Marshal(c.Pools[0].Settings)
	if err != nil {
		t.Fatal(err)
	}
	r := coxAt(t, "", string(settings), "pool", "add", c.Pools[0].Name, "--engine", "kube", "--settings", "-", "--print-rbac=serviceaccount:coxswain:coxswain")
	if r.Code != 0 {
		t.Fatalf("exit %d: %s", r.Code, r.Err)
	}
	want := r.Out
	const path = manifests + "/roles.yaml"
	want = "# What cox pool add k8s --engine kube --settings … --print-rbac=serviceaccount:coxswain:coxswain prints.\n" + want
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what --print-rbac prints (%v): make docs", path, err)
	}
}
