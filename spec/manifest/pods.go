package manifest

import (
	"strings"

	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// checkPart checks what a group of fields has to fulfil as a whole, as Kubernetes does.
func (c *checker) checkPart(way *step, n *yaml.Node, at yaml.Place, t *fields.Type) {
	c.checkNamesOf(way, n, t)
	switch t.Name {
	case "PodSpec":
		c.checkPod(way, n)
	case "Volume":
		c.checkOneOf(way, n, at, "a volume", "name")
	case "EnvVarSource":
		c.checkOneOf(way, n, at, "a variable")
	case "EnvVar":
		if value, from := n.Get("value"), n.Get("valueFrom"); isGiven(value) && value.Text != "" && isGiven(from) {
			c.addError(at, way.path(), "keep one of them", "it has both value and valueFrom")
		}
	case "JobSpec":
		c.checkJob(way, n)
	}
}

func isGiven(n *yaml.Node) bool { return n != nil && n.Kind != yaml.Null }

// checkOneOf refuses a group with more than one source.
func (c *checker) checkOneOf(way *step, n *yaml.Node, at yaml.Place, what string, besides ...string) {
	var names []string
	for i := range n.Fields {
		f := &n.Fields[i]
		if isGiven(f.Value) && !strings.Contains(" "+strings.Join(besides, " ")+" ", " "+f.Name+" ") {
			names = append(names, f.Name)
		}
	}
	if len(names) > 1 {
		c.addError(at, way.path(), "keep one of them", "%s has one source, and this one has %s", what, strings.Join(names, " and "))
	}
}

// checkPod checks names within a pod: of containers, of volumes, and of the volumes that are mounted.
func (c *checker) checkPod(way *step, n *yaml.Node) {
	volumes := c.checkNames(way, n, map[string]bool{}, "volumes")
	c.checkNames(way, n, map[string]bool{}, "initContainers", "containers")
	for _, list := range []string{"initContainers", "containers"} {
		containers := n.Get(list)
		if containers == nil {
			continue
		}
		for i, container := range containers.Items {
			mounts := container.Get("volumeMounts")
			if mounts == nil {
				continue
			}
			for k, mount := range mounts.Items {
				name := mount.Get("name")
				if name == nil || name.Kind != yaml.Scalar || volumes[name.Text] || c.claimsVolumes() {
					continue
				}
				s := &step{up: &step{up: &step{up: &step{up: &step{up: way, name: list}, index: i}, name: "volumeMounts"}, index: k}, name: "name"}
				c.addError(valuePlace(name, mount.Place), s.path(), "add it to volumes of the pod, or correct the name", "the pod has no volume %q", shortText(name.Text))
			}
		}
	}
}

// claimsVolumes reports whether the kind makes volumes of its own for its pods.
func (c *checker) claimsVolumes() bool {
	return c.doc.Node("spec.volumeClaimTemplates") != nil || c.doc.Node("spec.leaderWorkerTemplate.volumeClaimTemplates") != nil ||
		c.doc.Node("spec.volumeClaimPolicies") != nil || c.doc.Kind.Type().Name == "VolcanoJob"
}

// checkNames refuses a name that two entries of lists of a pod have. It returns all names.
func (c *checker) checkNames(way *step, n *yaml.Node, seen map[string]bool, lists ...string) map[string]bool {
	for _, list := range lists {
		entries := n.Get(list)
		if entries == nil {
			continue
		}
		for i, entry := range entries.Items {
			name := entry.Get("name")
			if name == nil || name.Kind != yaml.Scalar {
				continue
			}
			if seen[name.Text] {
				s := &step{up: &step{up: &step{up: way, name: list}, index: i}, name: "name"}
				c.addError(valuePlace(name, entry.Place), s.path(), "give each one a name of its own", "there are two of the name %q", shortText(name.Text))
			}
			seen[name.Text] = true
		}
	}
	return seen
}

// checkJob refuses the restart policy that Kubernetes refuses of the pods of a Job.
func (c *checker) checkJob(way *step, n *yaml.Node) {
	pod := n.Get("template")
	if pod == nil || pod.Get("spec") == nil || pod.Get("spec").Kind != yaml.Mapping {
		return
	}
	spec := pod.Get("spec")
	s := &step{up: &step{up: way, name: "template"}, name: "spec"}
	switch policy := spec.Get("restartPolicy"); {
	case !isGiven(policy):
		c.addError(findField(pod, "spec").Place, s.path(), "add restartPolicy: Never (or OnFailure)", "the pods of a Job need a restartPolicy: left out it is Always")
	case policy.Text == "Always":
		c.addError(policy.Place, (&step{up: s, name: "restartPolicy"}).path(), "write Never or OnFailure", "the pods of a Job come to an end, and Always starts them again")
	}
}
