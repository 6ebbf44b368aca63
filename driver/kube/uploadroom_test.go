package kube

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/job"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// TestUploadRoom: the directory that comes with a job has a bound in the pods, which the kubelet
// knows and the crew: that of the settings, or 10 GiB, or what the pod has of disks by what the job
// asks for, if that is more.
//
// Seen to fail with: no bound; what the job asks for not looked at; what a node has taken for what the
// pod of each of its tasks has; what is said of tasks not looked at.
func TestUploadRoom(t *testing.T) {
	for what, x := range map[string]struct {
		set, disk, want int64
		each            int64 // of each of a node's two tasks
		apart           bool  // these have a pod each
	}{
		"nothing is said":              {0, 0, 10 << 30, 0, false},
		"by the settings":              {3 << 30, 0, 3 << 30, 0, false},
		"the job asks for more":        {3 << 30, 5 << 30, 5 << 30, 0, false},
		"the job asks for less":        {3 << 30, 1 << 30, 3 << 30, 0, false},
		"by task, in one pod":          {3 << 30, 1 << 30, 9 << 30, 4 << 30, false},
		"a pod for each task":          {3 << 30, 10 << 30, 5 << 30, 0, true},
		"a pod for each task, by task": {3 << 30, 0, 4 << 30, 4 << 30, true},
		"a pod for each task, by both": {3 << 30, 4 << 30, 6 << 30, 4 << 30, true},
		"a pod for each task, less":    {3 << 30, 5 << 30, 3 << 30, 0, true},
	} {
		s := newStand(t, "n1")
		e := s.open(func(c *Config) { c.Terms.WorkDir, c.Terms.UploadRoom = settings.WorkDirUpload, x.set })
		l := launchOn(1, "n1")
		l.Job.Spec.Upload, l.Job.Spec.WorkDir = &job.Upload{Dir: "/w/ada", Size: 1, Digest: "d"}, "/w/ada"
		g := &l.Job.Spec.Groups[0]
		g.PerNode.Disk, g.PerTask.Disk, g.Tasks.Want = amount.Amount(x.disk), amount.Amount(x.each), 2
		l.Job.Spec.Pod = &job.Pod{PerTask: x.apart}
		nodes, err := e.nodesOf(t.Context(), l.Claims, "default")
		if err != nil {
			t.Fatal(err)
		}
		a := e.renderAttempt(l.Ref, &order{Job: l.Job, Claims: l.Claims, Script: l.Script, Nodes: nodes, Namespace: "default"})
		got := int64(0)
		for _, v := range a.Pods("")[0].Spec.Volumes {
			if v.Name == "upload" && v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
				got = v.EmptyDir.SizeLimit.Value()
			}
		}
		if got != x.want || a.UploadRoom != x.want {
			t.Errorf("%s: the volume has %d, the crew %d, want %d", what, got, a.UploadRoom, x.want)
		}
	}
}
