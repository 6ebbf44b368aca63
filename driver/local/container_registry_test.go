package local_test

import (
	"strings"

	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/engine"
)

// testPrivateImage runs jobs with an image of a registry that asks for a password: without the
// user's login it is refused with the command to type, with it the image is pulled and its digest
// reported.
func testPrivateImage(j *podmanJobs) {
	t, e, lab := j.t, j.engine, j.lab
	who := registry.Credential{User: "anna", Password: `a "secret" \ with:signs`}
	who.Host = lab.StartRegistry(t, who.User, who.Password)
	image := who.Host + "/team/busybox:1"
	digest := lab.Push(t, image, who)
	home := t.TempDir()
	inRegistry := func(nodes int) *engine.Launch {
		l := j.next(nodes, "cat /etc/image")
		l.Job.Spec.Image = image
		l.Env = append(l.Env, "HOME="+home, "XDG_CONFIG_HOME=")
		return l
	}
	l := inRegistry(2)
	launch(t, e, l)
	if r := until(t, e, l.Ref, gone); !strings.Contains(r.Message, "cox registry login "+who.Host) || r.Image != "" {
		t.Errorf("%+v: no command to log in", r)
	}
	d := registry.FolderOf(func(name string) string { return map[string]string{"HOME": home}[name] })
	if err := d.Save([]registry.Credential{who}); err != nil {
		t.Fatal(err)
	}
	r, out := outputOf(t, e, inRegistry(1))
	if !r.Exit.OK() || !strings.HasSuffix(out, "\nmade of busybox\n") || !strings.Contains(out, "image "+image+": pulled on ") {
		t.Errorf("%+v: %s", r, out)
	}
	if r.Image != digest {
		t.Errorf("digest %q, and the registry has %q", r.Image, digest)
	}
	lab.Call(t, "rmi", image)
	j.nothingLeft()
}
