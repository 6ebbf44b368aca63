package native

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// containerFields are the fields of container_options, in the order in which Render writes them.
var containerFields = []field[job.Container]{
	{name: "mounts", form: form{text: "[SOURCE:TARGET[:FLAG+FLAG], …]", schema: aList.schema}, doc: "directories and files of the node that it sees, for example /data:/data:ro; tmpfs:/scratch is an empty one", sbatch: "container-mounts", also: []string{"volumes", "binds"}, set: setMounts},
	{name: "workdir", form: aText, doc: "directory inside in which programs start; the job's, which is mounted, if not given", sbatch: "container-workdir", also: []string{"working_dir"}, set: containerText("container-workdir")},
	{name: "env", form: aList, doc: "names of variables of which the job's value outranks the image's", sbatch: "container-env", set: containerList("container-env")},
	{name: "name", form: aText, doc: "under which steps of the job find it again", sbatch: "container-name", set: containerText("container-name")},
	{name: "mount_home", form: aBool, doc: "mount the home directory", sbatch: "container-mount-home", set: switchField(func(c *job.Container) **bool { return &c.Home })},
	{name: "remap_root", form: aBool, doc: "its processes are root inside, and the job's user outside", sbatch: "container-remap-root", set: switchField(func(c *job.Container) **bool { return &c.RemapRoot })},
	{name: "entrypoint", form: aBool, doc: "run the image's entry point first", sbatch: "container-entrypoint", set: switchField(func(c *job.Container) **bool { return &c.Entrypoint })},
	{name: "writable", form: aBool, doc: "its files can be changed, for as long as it lives", sbatch: "container-writable", set: switchField(func(c *job.Container) **bool { return &c.Writable })},
}

func setContainer(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write mounts: [/data:/data] and its like, one a line below container_options:", "is %s where fields are expected", v.Kind)
		return
	}
	c := &job.Container{}
	decodeFields(p, v.path, v.Node, containerFields, c)
	if !c.IsZero() {
		d.spec.Container = c
	}
}

func setMounts(p *parser, c *job.Container, v value) {
	for _, text := range p.parseList(v) {
		m, err := containeropt.ParseMount(text)
		if err != nil {
			p.failValue(v, "", "%v", err)
			return
		}
		c.Mounts = append(c.Mounts, m)
	}
}

// containerText enters a text as the option of its name does.
func containerText(option string) func(*parser, *job.Container, value) {
	return func(p *parser, c *job.Container, v value) {
		if text, ok := p.parseLine(v); ok {
			p.setContainerOption(c, v, option, text)
		}
	}
}

func containerList(option string) func(*parser, *job.Container, value) {
	return func(p *parser, c *job.Container, v value) {
		for _, text := range p.parseList(v) {
			p.setContainerOption(c, v, option, text)
		}
	}
}

func (p *parser) setContainerOption(c *job.Container, v value, option, text string) {
	if err := containeropt.Set(new(string), c, option, text); err != nil {
		p.failValue(v, "", "%v", err)
	}
}

func switchField(to func(*job.Container) **bool) func(*parser, *job.Container, value) {
	return func(p *parser, c *job.Container, v value) {
		on := p.parseBool(v)
		*to(c) = &on
	}
}

// layContainer lays the options of a container over what the document says of it.
func (p *parser) layContainer(s *job.Spec, options []*sbatch.Directive) {
	if len(options) == 0 {
		return
	}
	over, was := job.Container{}, job.Container{}
	for _, d := range options {
		if err := containeropt.Set(new(string), &over, d.Option, d.Value); err != nil {
			p.errs = append(p.errs, d.Refuse(err, ""))
		}
	}
	if s.Container != nil {
		was = *s.Container
	}
	if len(over.Mounts) > 0 {
		was.Mounts = over.Mounts
	}
	if len(over.Env) > 0 {
		was.Env = over.Env
	}
	for _, f := range []struct{ to, from *string }{{&was.WorkDir, &over.WorkDir}, {&was.Name, &over.Name}} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	for _, f := range []struct{ to, from **bool }{{&was.Home, &over.Home}, {&was.RemapRoot, &over.RemapRoot}, {&was.Entrypoint, &over.Entrypoint}, {&was.Writable, &over.Writable}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	s.Container = &was
}

func (w *writer) writeContainer(c *job.Container) {
	if c.IsZero() {
		return
	}
	w.openGroup("container_options")
	var mounts []string
	for i := range c.Mounts {
		mounts = append(mounts, containeropt.FormatMount(&c.Mounts[i]))
	}
	w.writeList("mounts", mounts)
	w.writeText("workdir", c.WorkDir)
	w.writeList("env", c.Env)
	w.writeText("name", c.Name)
	for _, f := range []struct {
		name string
		on   *bool
	}{{"mount_home", c.Home}, {"remap_root", c.RemapRoot}, {"entrypoint", c.Entrypoint}, {"writable", c.Writable}} {
		if f.on != nil {
			w.writeRaw(f.name, true, strconv.FormatBool(*f.on))
		}
	}
	w.closeGroup()
}
