package jobs

import (
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestDigestIsShown: a job's provenance has the digest of the image that ran, and no longer says that
// it is not resolved. The stored specification stays as it is.
func TestDigestIsShown(t *testing.T) {
	spec := &job.Spec{Image: "a:1", Provenance: &job.Provenance{Notes: []string{"image a:1: its digest is not resolved; write NAME@sha256:… to pin it", "other"}}}
	if got := withDigest(spec, ""); got != spec {
		t.Errorf("without a digest: %+v", got.Provenance)
	}
	got := withDigest(spec, "sha256:x")
	if p := got.Provenance; p.Image != "sha256:x" || !slices.Equal(p.Notes, []string{"other"}) {
		t.Errorf("%+v", p)
	}
	if p := spec.Provenance; p.Image != "" || len(p.Notes) != 2 {
		t.Errorf("stored: %+v", p)
	}
	if p := withDigest(&job.Spec{Image: "a:1"}, "sha256:x").Provenance; p == nil || p.Image != "sha256:x" {
		t.Errorf("%+v", p)
	}
}
