package local_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// testOtherUsersImage runs a job of another user than root's: podman runs as that user, with images
// of that user's own. It runs there, or is refused with what podman said; never as root.
func testOtherUsersImage(j *podmanJobs) {
	t, lab := j.t, j.lab
	files := filepath.Join(filepath.Dir(lab.Cox), "image.tar")
	lab.Call(t, "save", "--quiet", "--output="+files, podmanlab.Image)
	if err := os.Chmod(files, 0o644); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, local.Config{Root: passable(t), Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: lab.Podman}})
	l := planFor(t, e, anna, 1, "cat /etc/image; id -u; touch made")
	l.Job.Spec.Image = podmanlab.Image
	j.number(l)
	launch(t, e, l) // whose user has no such image
	if r := until(t, e, l.Ref, gone); !strings.Contains(r.Message, "image "+podmanlab.Image+" cannot be pulled") {
		t.Errorf("%+v: root's image was found", r)
	}
	if out, err := asUser(t, anna, "HOME="+l.Job.Spec.WorkDir+" "+lab.Podman+" load --quiet --input="+files); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	j.number(l)
	launch(t, e, l)
	r := until(t, e, l.Ref, gone)
	if r.Exit.OK() && r.Cause == engine.Exited {
		if out := read(t, outputFile(l)); out != "made of busybox\n61001\n" {
			t.Errorf("%q", out)
		}
	} else if !strings.Contains(r.Message, "/etc/subuid") || !strings.Contains(r.Message, "usermod --add-subuids") {
		t.Errorf("%+v: not refused with what an administrator does", r)
	}
	j.nothingLeft() // of root's
	if out, err := asUser(t, anna, "HOME="+l.Job.Spec.WorkDir+" "+lab.Podman+" system reset --force"); err != nil {
		t.Logf("%v: %s", err, out)
	}
}
