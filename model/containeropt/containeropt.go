// Package containeropt reads the options of the pyxis plugin of Slurm, which say in which
// container a job or a step runs: --container-image, --container-mounts and so on.
//
// sbatch and srun read them with this one table. The package is pure: it does not look whether an
// image or a directory exists.
package containeropt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Option is one option of pyxis.
type Option struct {
	Name     string
	Argument bool   // it has an argument
	Refused  string // why Coxswain's own containers refuse it; empty: they take it
}

// Why options are refused.
const (
	whySave    = "a container is not saved; build the image with podman build or podman commit, and name that image"
	whyUnshare = "containers share the network, IPC and host name of their node; leave it out"
	whyLog     = "the output of an entry point is always printed if it fails; leave the option out"
)

// Options are all options of pyxis.
var Options = []Option{
	{Name: "container-image", Argument: true},
	{Name: "container-mounts", Argument: true},
	{Name: "container-workdir", Argument: true},
	{Name: "container-name", Argument: true},
	{Name: "container-env", Argument: true},
	{Name: "container-mount-home"},
	{Name: "no-container-mount-home"},
	{Name: "container-remap-root"},
	{Name: "no-container-remap-root"},
	{Name: "container-entrypoint"},
	{Name: "no-container-entrypoint"},
	{Name: "container-writable"},
	{Name: "container-readonly"},
	{Name: "container-save", Argument: true, Refused: whySave},
	{Name: "container-unshare", Argument: true, Refused: whyUnshare},
	{Name: "container-entrypoint-log", Refused: whyLog},
}

// Find returns the option of a name, nil if pyxis has none.
func Find(name string) *Option {
	i := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &Options[i]
}

// Set enters an option. The error completes a sentence that begins with the option.
func Set(image *string, c *job.Container, name, value string) error {
	o := Find(name)
	switch {
	case o == nil:
		return errors.New("is no option of a container")
	case o.Refused != "":
		return errors.New("is refused: " + o.Refused)
	case o.Argument && value == "":
		return errors.New("needs a value")
	}
	switch name {
	case "container-image":
		return setImage(image, value)
	case "container-mounts":
		return setMounts(c, value)
	case "container-workdir":
		if !path.IsAbs(value) {
			return fmt.Errorf("%q is not absolute; write the directory as it is inside of the container", value)
		}
		c.WorkDir = path.Clean(value)
		return nil
	case "container-name":
		return setName(c, value)
	case "container-env":
		return setEnv(c, value)
	}
	return setSwitch(c, name)
}

// setSwitch enters an option without an argument. One and its opposite exclude each other.
func setSwitch(c *job.Container, name string) error {
	switches := []struct {
		on, off string
		to      **bool
	}{
		{"container-mount-home", "no-container-mount-home", &c.Home},
		{"container-remap-root", "no-container-remap-root", &c.RemapRoot},
		{"container-entrypoint", "no-container-entrypoint", &c.Entrypoint},
		{"container-writable", "container-readonly", &c.Writable},
	}
	for _, s := range switches {
		if name != s.on && name != s.off {
			continue
		}
		on := name == s.on
		if *s.to != nil && **s.to != on {
			return fmt.Errorf("contradicts --%s; leave one of them out", map[bool]string{true: s.off, false: s.on}[on])
		}
		*s.to = &on
	}
	return nil
}

// setImage enters the image. pyxis writes REGISTRY#IMAGE for what others write REGISTRY/IMAGE, and
// says docker:// before it.
func setImage(image *string, value string) error {
	if err := CheckImage(value); err != nil {
		return err
	}
	*image = value
	return nil
}

// CheckImage reports why a text is no image.
func CheckImage(value string) error {
	if value == "" || strings.ContainsAny(value, " \t\n\"'\x00") || strings.HasPrefix(value, "-") {
		return fmt.Errorf("%.100q is no image; write REGISTRY/NAME:TAG", value)
	}
	return nil
}

// Reference is an image as podman and docker name it: of pyxis's [docker://][USER@][REGISTRY#]IMAGE
// it leaves REGISTRY/IMAGE.
func Reference(image string) string {
	image = strings.TrimPrefix(strings.TrimPrefix(image, "dockerd://"), "docker://")
	registry, name, ok := strings.Cut(image, "#")
	if !ok {
		return image
	}
	if _, host, ok := strings.Cut(registry, "@"); ok {
		registry = host
	}
	return registry + "/" + name
}

// IsFile reports whether an image is a file or directory of the node: it begins as a path does.
func IsFile(image string) bool { return strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") }

// mountFlags are the flags of a mount that are understood.
var mountFlags = []string{
	"ro", "rw", "bind", "rbind", "private", "rprivate", "slave", "rslave", "shared", "rshared", "nosuid", "nodev", "noexec",
	"x-create=auto", "x-create=dir", "x-create=file",
}

// setMounts adds mounts: SRC[:DST[:FLAG+FLAG…]], with commas between them.
func setMounts(c *job.Container, value string) error {
	for one := range strings.SplitSeq(value, ",") {
		m, err := ParseMount(one)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(c.Mounts, func(o job.Mount) bool {
			return o.Source == m.Source && o.Target == m.Target && slices.Equal(o.Flags, m.Flags)
		}) {
			c.Mounts = append(c.Mounts, m)
		}
	}
	return nil
}

// ParseMount reads SRC[:DST[:FLAG+FLAG…]].
func ParseMount(text string) (job.Mount, error) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro"
	parts := strings.SplitN(text, ":", 3)
	m := job.Mount{Source: parts[0], Target: parts[0]}
	if len(parts) > 1 {
		m.Target = parts[1]
	}
	if len(parts) > 2 && parts[2] != "" {
		m.Flags = strings.Split(parts[2], "+")
	}
	switch {
	case m.Source == "" || m.Target == "":
		return m, fmt.Errorf("%q is no mount; %s", text, form)
	case m.Source == "umount":
		return m, fmt.Errorf("%q takes a mount away, which is not possible here; leave it out", text)
	case m.Source != "tmpfs" && m.Source[0] != '/' && m.Source[0] != '.':
		return m, fmt.Errorf("%q: the source is neither an absolute path nor one that begins with a dot; %s", text, form)
	case strings.ContainsRune(text, 0):
		return m, fmt.Errorf("%q has a NUL byte", text)
	}
	if m.Target[0] != '/' {
		return m, fmt.Errorf("%q: the target is not absolute; %s", text, form)
	}
	if err := CheckPaths(&m); err != nil {
		return m, err
	}
	for _, f := range m.Flags {
		if !slices.Contains(mountFlags, f) {
			return m, fmt.Errorf("%q: %q is no flag of a mount; the flags are %s", text, f, strings.Join(mountFlags, ", "))
		}
	}
	m.Target = path.Clean(m.Target)
	return m, nil
}

// CheckPaths reports a mount whose paths a runtime would read as more than paths.
func CheckPaths(m *job.Mount) error {
	for _, name := range []string{m.Source, m.Target} {
		if i := strings.IndexFunc(name, func(r rune) bool { return r == ',' || r == ':' || unicode.IsSpace(r) || unicode.IsControl(r) }); i >= 0 {
			return fmt.Errorf("%q: the paths of a mount have no commas, colons or blanks", name)
		}
	}
	return nil
}

// FormatMount writes a mount as ParseMount reads it.
func FormatMount(m *job.Mount) string {
	text := m.Source + ":" + m.Target
	if len(m.Flags) > 0 {
		text += ":" + strings.Join(m.Flags, "+")
	}
	return text
}

// setName enters the name of a container. pyxis's flag auto is the only way here.
func setName(c *job.Container, value string) error {
	name, flag, _ := strings.Cut(value, ":")
	switch {
	case flag != "" && flag != "auto":
		return fmt.Errorf("%q: the flag %q is not served; leave it out: the container is made at its first use and found again at the next", value, flag)
	case name == "" || strings.ContainsAny(name, "/ \t\n\x00"):
		return fmt.Errorf("%q is no name of a container; write letters, digits, - and _", value)
	}
	c.Name = name
	return nil
}

func setEnv(c *job.Container, value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if name == "" || strings.ContainsAny(name, "= \t\n\x00") {
			return fmt.Errorf("%q is no list of names of variables; write --container-env=NAME,NAME", value)
		}
		if !slices.Contains(c.Env, name) {
			c.Env = append(c.Env, name)
		}
	}
	return nil
}

// Words are the options of srun or sbatch that say the same, for a site with pyxis.
func Words(image string, c *job.Container) []string {
	var out []string
	if image != "" {
		out = append(out, "--container-image="+image)
	}
	if c == nil {
		return out
	}
	if len(c.Mounts) > 0 {
		var all []string
		for i := range c.Mounts {
			all = append(all, FormatMount(&c.Mounts[i]))
		}
		out = append(out, "--container-mounts="+strings.Join(all, ","))
	}
	for _, o := range [][2]string{{"workdir", c.WorkDir}, {"name", c.Name}, {"env", strings.Join(c.Env, ",")}} {
		if o[1] != "" {
			out = append(out, "--container-"+o[0]+"="+o[1])
		}
	}
	for _, o := range []struct {
		say     *bool
		on, off string
	}{
		{c.Home, "container-mount-home", "no-container-mount-home"},
		{c.RemapRoot, "container-remap-root", "no-container-remap-root"},
		{c.Entrypoint, "container-entrypoint", "no-container-entrypoint"},
		{c.Writable, "container-writable", "container-readonly"},
	} {
		switch {
		case o.say != nil && *o.say:
			out = append(out, "--"+o.on)
		case o.say != nil:
			out = append(out, "--"+o.off)
		}
	}
	return out
}
