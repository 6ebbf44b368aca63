package podscript

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// containerVariables are the variables of a container, in the order in which they may name each other:
// those of whole ConfigMaps and Secrets, the template's own, the operator's.
func (r *role) containerVariables(c *podspec.Container, path string) (variables, error) {
	var vs variables
	for i := range c.EnvFrom {
		if err := r.addWhole(&vs, &c.EnvFrom[i], fmt.Sprintf("%s.envFrom[%d]", path, i)); err != nil {
			return nil, err
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		at := fmt.Sprintf("%s.env[%d]", path, i)
		switch {
		case !isVariableName(e.Name):
			return nil, refuseField(at+".name", "correct the name", "%q is no name of a variable", e.Name)
		case strings.ContainsRune(e.Value, 0):
			return nil, refuseField(at+".value", "correct it", "it has a NUL byte")
		}
		v, there := vs.expandNames(e.Value), true
		if e.From != nil {
			var err error
			if v, there, err = r.referredValue(c, e.From, at+".valueFrom"); err != nil {
				return nil, err
			}
		}
		if there {
			vs.set(e.Name, v)
		}
	}
	for _, e := range r.role.Env {
		if vs.find(e.Name) < 0 {
			vs.set(e.Name, r.operatorValue(e.Value))
		}
	}
	if vs.find("HOSTNAME") < 0 {
		vs.set("HOSTNAME", r.podName())
	}
	return vs, r.checkVariables(vs, path)
}

// checkVariables refuses names that a shell would read as something else, and those with which everybody
// on the node would see a secret in the list of processes.
func (r *role) checkVariables(vs variables, path string) error {
	for _, v := range vs {
		switch {
		case !isVariableName(v.name):
			return refuseField(path+".envFrom", "correct the key or the prefix", "%q is no name of a variable", v.name)
		case strings.HasPrefix(v.name, ownPrefix):
			return refuseField(path+".env", "give the variable another name", "names that begin with %s are those of the script that runs the pods, and %s is one", ownPrefix, v.name)
		case v.value.isSecret() && r.isShown(v.name):
			return refuseField(path+".env", "give the variable a name of letters, digits and _ that neither the shell nor the container runtime has a meaning for",
				"%q is no name that can be handed over without showing the secret", v.name)
		}
	}
	return nil
}

// ownPrefix begins the names of the variables of the script that those of a container stand beside.
const ownPrefix = "_cox_"

// isVariableName reports whether a name has the letters that a variable of a container may have.
func isVariableName(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

// isShown reports whether the value of a variable stands in the arguments of a process.
func (r *role) isShown(name string) bool {
	switch {
	case !isIdentifier(name):
		return true
	case r.runtime.Ours:
		return false
	case r.runtime.Srun:
		return isOfShell(name)
	}
	return isOfNode(name) || isOfShell(name)
}

// isOfShell reports whether a variable is one that bash keeps for itself, or that changes how it reads.
func isOfShell(name string) bool {
	return slices.Contains([]string{
		"_", "UID", "EUID", "PPID", "GROUPS", "SHELLOPTS", "BASHOPTS", "FUNCNAME", "DIRSTACK", "RANDOM", "SRANDOM", "SECONDS", "LINENO",
		"EPOCHSECONDS", "EPOCHREALTIME", "HISTCMD", "IFS", "POSIXLY_CORRECT", "PIPESTATUS", "COMP_WORDBREAKS", "OPTIND",
	}, name) || strings.HasPrefix(name, "BASH")
}

// isIdentifier reports whether a name is one that a shell can export.
func isIdentifier(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// isSecret reports whether a value has one of a secret in it.
func (v value) isSecret() bool {
	return slices.ContainsFunc(v, func(p piece) bool { return strings.HasPrefix(p.shell, "${_cox_secret[") })
}

// addWhole adds all keys of a ConfigMap or Secret.
func (r *role) addWhole(vs *variables, from *podspec.EnvFrom, path string) error {
	switch {
	case from.ConfigMap != nil:
		m := r.configMap(from.ConfigMap.Name)
		if m == nil {
			return refuseAbsent(from.ConfigMap.Optional, path+".configMapRef", "ConfigMap", from.ConfigMap.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			vs.set(from.Prefix+key, literalText(m.Data[key]))
		}
	case from.Secret != nil:
		keys, _, err := r.secretKeys(from.Secret.Name, true, from.Secret.Optional, path+".secretRef")
		if err != nil {
			return err
		}
		for _, key := range keys {
			v, there, err := r.secretValue(from.Secret.Name, key, from.Secret.Optional, path+".secretRef")
			if err != nil {
				return err
			}
			if there {
				vs.set(from.Prefix+key, v)
			}
		}
	}
	return nil
}

// refuseAbsent refuses an object that is not there, unless it may be missing.
func refuseAbsent(optional bool, path, kind, name string) error {
	if optional {
		return nil
	}
	return refuseField(path, "add the "+kind+" to the file, or write optional: true", "there is no %s %q in the file", kind, name)
}

// referredValue is the value of a variable that says where it comes from. there is false for an optional one
// that is missing.
func (r *role) referredValue(c *podspec.Container, from *podspec.EnvRefs, path string) (v value, there bool, err error) {
	switch {
	case from.Field != nil:
		v, err = r.fieldValue(from.Field.Path, path+".fieldRef.fieldPath")
		return v, true, err
	case from.Resource != nil:
		v, err = r.resourceValue(c, from.Resource, path+".resourceFieldRef")
		return v, true, err
	case from.ConfigMap != nil:
		k := from.ConfigMap
		m := r.configMap(k.Name)
		if m == nil {
			return nil, false, refuseAbsent(k.Optional, path+".configMapKeyRef", "ConfigMap", k.Name)
		}
		text, ok := m.Data[k.Key]
		if !ok && !k.Optional {
			err = refuseField(path+".configMapKeyRef", "correct the key", "the ConfigMap %s has no key %q", k.Name, k.Key)
		}
		return literalText(text), ok, err
	case from.Secret != nil:
		return r.secretValue(from.Secret.Name, from.Secret.Key, from.Secret.Optional, path+".secretKeyRef")
	}
	return nil, false, refuseField(path, "write fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef", "it does not say where the value comes from")
}

// fieldValue is the value of a field of the pod.
func (r *role) fieldValue(name, path string) (value, error) {
	if key, ok := cutSubscript(name, "metadata.labels"); ok {
		return r.labelValue(r.role.Labels, r.pod.Metadata.Labels, key), nil
	}
	if key, ok := cutSubscript(name, "metadata.annotations"); ok {
		return r.labelValue(r.role.Annotations, r.pod.Metadata.Annotations, key), nil
	}
	switch name {
	case "metadata.name":
		return shellText("$_cox_name"), nil
	case "metadata.namespace":
		return literalText(r.namespaceName()), nil
	case "metadata.uid":
		return shellText("$_cox_uid"), nil
	case "spec.nodeName":
		return shellText("$_cox_node"), nil
	case "spec.serviceAccountName":
		if name := r.pod.Spec.ServiceAccountName; name != "" {
			return literalText(name), nil
		}
		return literalText("default"), nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return shellText("$_cox_ip"), nil
	}
	return nil, refuseField(path, "name metadata.name, namespace, uid, labels['KEY'], annotations['KEY'], spec.nodeName, spec.serviceAccountName, status.podIP or status.hostIP",
		"%q is no field that a pod has outside of Kubernetes", name)
}

// cutSubscript is the key in FIELD['KEY'].
func cutSubscript(text, field string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(text, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// labelValue is a label or annotation: the template's outranks the operator's, as on Kubernetes. One that is
// not there is empty.
func (r *role) labelValue(added, own map[string]string, key string) value {
	if text, ok := own[key]; ok {
		return literalText(text)
	}
	return r.operatorValue(added[key])
}

func (r *role) namespaceName() string {
	if r.set.Namespace != "" {
		return r.set.Namespace
	}
	return "default"
}

// resourceValue is the value of a resourceFieldRef: in units of its divisor, rounded up.
func (r *role) resourceValue(c *podspec.Container, ref *podspec.ResourceRef, path string) (value, error) {
	if ref.Container != "" && ref.Container != c.Name {
		i := slices.IndexFunc(r.pod.Spec.Containers, func(o podspec.Container) bool { return o.Name == ref.Container })
		if i < 0 {
			return nil, refuseField(path+".containerName", "correct the name", "the pod has no container %q", ref.Container)
		}
		c = &r.pod.Spec.Containers[i]
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	q, there := c.Resources.Limits[name]
	switch kind {
	case "limits":
	case "requests":
		if asked, ok := c.Resources.Requests[name]; ok {
			q, there = asked, true
		}
	default:
		return nil, refuseField(path+".resource", "write limits.NAME or requests.NAME", "%q is no amount of a container", ref.Resource)
	}
	switch {
	case !there && kind == "limits" && name == "cpu": // Kubernetes: what the node has
		return shellText("${SLURM_CPUS_ON_NODE:-1}"), nil
	case !there:
		return nil, refuseField(path+".resource", "add resources."+kind+"."+name+" to the container", "the container %s says nothing of %s", c.Name, ref.Resource)
	}
	n, err := parseQuantity(string(q))
	if err != nil {
		return nil, refuseField(path+".resource", "correct the amount", "%s: %v", ref.Resource, err)
	}
	by := int64(1000)
	if ref.Divisor != "" && ref.Divisor != "0" {
		if by, err = parseQuantity(string(ref.Divisor)); err != nil || by == 0 {
			return nil, refuseField(path+".divisor", "write an amount such as 1Mi", "%q is no divisor", ref.Divisor)
		}
	}
	return literalText(strconv.FormatInt((n+by-1)/by, 10)), nil
}

func (r *role) configMap(name string) *podspec.ConfigMap {
	for i := range r.set.ConfigMaps {
		if r.set.ConfigMaps[i].Name == name {
			return &r.set.ConfigMaps[i]
		}
	}
	return nil
}
