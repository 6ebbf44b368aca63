package manifest

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// checkNamesOf checks names of a group of fields as Kubernetes does: names of pods and hosts are made of them.
func (c *checker) checkNamesOf(way *step, n *yaml.Node, t *fields.Type) {
	switch t.Name {
	case "ObjectMeta":
		if c.doc.Kind.Name == "Service" {
			c.checkName(way, n, "name", podspec.CheckLabel)
		} else {
			c.checkName(way, n, "name", podspec.CheckSubdomain)
		}
		c.checkName(way, n, "generateName", func(s string) error { return podspec.CheckSubdomain(strings.TrimRight(s, "-")) })
		c.checkName(way, n, "namespace", podspec.CheckLabel)
	case "PodSpec":
		c.checkName(way, n, "hostname", podspec.CheckLabel)
		c.checkName(way, n, "subdomain", podspec.CheckLabel)
	case "Container", "InitContainer", "Volume", "VolcanoTask", "ReplicatedJob":
		c.checkName(way, n, "name", podspec.CheckLabel)
	case "RayWorkerGroup":
		c.checkName(way, n, "groupName", podspec.CheckLabel)
	case "EnvVar":
		c.checkName(way, n, "name", podspec.CheckEnvName)
	}
}

// checkName checks the name in a field of a group; whether it has to be there is checked elsewhere.
func (c *checker) checkName(way *step, n *yaml.Node, field string, check func(string) error) {
	name := n.Get(field)
	if name == nil || name.Kind != yaml.Scalar || name.Text == "" {
		return
	}
	if err := check(name.Text); err != nil {
		c.addError(valuePlace(name, findField(n, field).Place), (&step{up: way, name: field}).path(), "choose another name, such as train-1", "%v", err)
	}
}
