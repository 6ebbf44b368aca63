package daemon

import (
	"strings"
	"testing"
)

// TestKubeWithin: what is wrong of where the pods of jobs are to be is refused with the setting.
//
// Seen to fail with: any name taken as that of a Topology.
func TestKubeWithin(t *testing.T) {
	for settings, want := range map[string]string{
		`{"within":"required=a/b"}`: "settings: within: Kueue alone is told that",
		`{"placed":false,"gang":"kueue","approximate":true,"queue":"q","within":"a/b"}`:          `settings: within: "a/b" says neither`,
		`{"placed":false,"gang":"kueue","approximate":true,"queue":"q","within":"required=a b"}`: `settings: within: "required=a b" says neither`,
		`{"placed":false,"gang":"kueue","approximate":true,"queue":"q","within":"required=a/b"}`: "",
		`{"topology":["kueue:Racks"]}`:       "settings: topology: ",
		`{"topology":["kueue:racks","a/b"]}`: "settings: topology: ",
		`{"topology":["kueue:racks"]}`:       "",
		`{"topology":["kueue:"]}`:            "",
	} {
		var set kubeSettings
		if err := ReadSettings([]byte(settings), &set); err != nil {
			t.Fatal(err)
		}
		_, err := set.readTerms("k8s-a")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}
