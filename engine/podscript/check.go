package podscript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// Check reports what a script cannot do of a job's pods, as Render does.
func Check(set *podspec.Set, spec *job.Spec, runtime Runtime) error {
	_, err := Render(set, spec, runtime)
	return err
}

// templatePath is where the pod spec of a role is, for people.
func templatePath(r *podspec.Role) string { return "pod template of " + oneLine(r.Name) + ": spec" }

// checkNames refuses names by which pods could not find each other, and which a shell or the node would read
// as something else.
func checkNames(set *podspec.Set) error {
	if set.Namespace != "" && !isHostName(set.Namespace) {
		return refuseField("namespace", "correct it", "%q is no name of a namespace", set.Namespace)
	}
	for i := range set.Roles {
		r := &set.Roles[i]
		if name := strings.NewReplacer("{i}", "0", "{i+1}", "1", "{task}", "0").Replace(r.PodName); !isHostName(name) {
			return refuseField(templatePath(r)+".hostname", "use letters, digits, hyphens and dots", "%q is no name of a host", name)
		}
		if sub := strings.ReplaceAll(r.Subdomain, "{task}", "0"); sub != "" && !isHostName(sub) {
			return refuseField(templatePath(r)+".subdomain", "use letters, digits, hyphens and dots", "%q is no name of a Service", sub)
		}
	}
	for i := range set.Services {
		if name := strings.ReplaceAll(set.Services[i].Name, "{task}", "0"); !isHostName(name) {
			return refuseField(fmt.Sprintf("services[%d].name", i), "use letters, digits and hyphens", "%q is no name of a Service", name)
		}
	}
	return nil
}

// isHostName reports whether a name is one of DNS.
func isHostName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || strings.HasSuffix(label, "-") ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return false
		}
	}
	return true
}

// hasControl reports whether a text has a character that a script cannot show.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// checkPod refuses what a role's pods cannot have without Kubernetes.
func (r *role) checkPod(base string) error {
	s := &r.pod.Spec
	if err := checkSecurity(s.SecurityContext, base+".securityContext"); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, list := range []struct {
		path       string
		containers []podspec.Container
	}{{base + ".initContainers", s.InitContainers}, {base + ".containers", s.Containers}} {
		for i := range list.containers {
			c, at := &list.containers[i], fmt.Sprintf("%s[%d]", list.path, i)
			if names[c.Name] {
				return refuseField(at+".name", "give each container a name of its own", "the pod has two containers %q", c.Name)
			}
			names[c.Name] = true
			if err := r.checkContainer(c, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *role) checkContainer(c *podspec.Container, at string) error {
	switch {
	case c.Image == "":
		return refuseField(at+".image", "name an image", "the container %s has no image", c.Name)
	case hasControl(c.Image):
		return refuseField(at+".image", "correct it", "it has a control character")
	case hasControl(c.WorkingDir):
		return refuseField(at+".workingDir", "correct it", "it has a control character")
	case len(c.Command) == 0 && r.runtime.Srun && !r.runtime.Ours:
		return refuseField(at+".command", "write the program that the image starts as command", "pyxis runs no entry point of an image, and the container %s has no command", c.Name)
	case slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(w string) bool { return strings.ContainsRune(w, 0) }):
		return refuseField(at+".command", "correct it", "it has a NUL byte")
	case c.TTY || c.Stdin:
		return refuseField(at+".stdin", "leave stdin and tty out, or use cox exec -t for a terminal in a job", "the containers of a job have no terminal and nothing to read")
	}
	for i := range c.Ports {
		if p := &c.Ports[i]; p.HostPort != 0 && p.HostPort != p.Port {
			return refuseField(fmt.Sprintf("%s.ports[%d].hostPort", at, i), "leave hostPort out: the container has the network of its node", "a port of a container is that of its node, %d and not %d", p.Port, p.HostPort)
		}
	}
	if owner := r.spec.Owner; owner.User != "" && owner.UID == 0 && !r.isRoot(c) {
		return refuseField(at+".securityContext.runAsUser", "submit it as another user than root, or leave runAsUser and runAsNonRoot out",
			"a container runs as the user of its job, which is root, and the container %s must not", c.Name)
	}
	if err := r.checkProbes(c, at); err != nil {
		return err
	}
	return checkSecurity(c.SecurityContext, at+".securityContext")
}

// checkProbes refuses probes that nobody would look at.
func (r *role) checkProbes(c *podspec.Container, at string) error {
	for _, p := range []struct {
		name  string
		probe *podspec.Probe
		serve bool // it says something of a service alone
	}{{"startupProbe", c.StartupProbe, false}, {"livenessProbe", c.LivenessProbe, false}, {"readinessProbe", c.ReadinessProbe, true}} {
		switch {
		case p.probe == nil:
		case r.spec.Serve == nil && !p.serve:
			return refuseField(at+"."+p.name, "leave it out: a program that fails ends its job", "the pods of a job that is no service are not probed")
		case r.spec.Serve != nil && p.probe.Exec != nil:
			return refuseField(at+"."+p.name+".exec", "use httpGet or tcpSocket", "a probe by a command does not reach into the container here")
		case r.spec.Serve != nil && p.probe.GRPC != nil:
			return refuseField(at+"."+p.name+".grpc", "use httpGet or tcpSocket", "there is no probe by gRPC here")
		}
	}
	return nil
}

func checkSecurity(s *podspec.SecurityContext, at string) error {
	switch {
	case s == nil:
		return nil
	case s.Privileged != nil && *s.Privileged:
		return refuseField(at+".privileged", "leave it out: the container has the devices of its job", "no container has more rights than its job's user")
	case s.Capabilities != nil && len(s.Capabilities.Add) > 0:
		return refuseField(at+".capabilities.add", "leave it out, or name a pool of Kubernetes", "no container has more rights than its job's user: %s cannot be added", strings.Join(s.Capabilities.Add, ", "))
	}
	return nil
}
