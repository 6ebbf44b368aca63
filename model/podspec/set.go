package podspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// MaxSetSize is the largest Set in JSON, in bytes.
const MaxSetSize = 4 << 20

// Set is the work of a manifest: what runs in the pods of one job.
type Set struct {
	Kind      string `json:"kind"`                // of the document, such as PyTorchJob
	Name      string `json:"name"`                // of the document
	Namespace string `json:"namespace,omitempty"` // as written; the pool's setting outranks it
	Roles     []Role `json:"roles"`               // by task group of the job

	// Complete says after which pods' end the job has succeeded: the others are ended then. Without
	// one it is after all.
	Complete *Complete `json:"complete,omitempty"`
	// KeepGoing says that a pod that fails ends no other: the job fails when all have ended.
	KeepGoing bool `json:"keep_going,omitempty"`

	ConfigMaps []ConfigMap `json:"config_maps,omitempty"` // that stand in the same file
	Secrets    []Secret    `json:"secrets,omitempty"`     // that stand in the same file or in the server's store
	Services   []Service   `json:"services,omitempty"`    // names by which the pods find each other
}

// Role is a set of pods that are alike.
type Role struct {
	Name     string `json:"name"`     // such as worker; unique in the set
	Replicas int    `json:"replicas"` // pods: the tasks of the role's group
	// PodName is a pod's name by its index from 0, with {i} for the index, or {i+1}: train-worker-{i}. It is the
	// host name inside, and what other pods resolve.
	PodName   string          `json:"pod_name"`
	Subdomain string          `json:"subdomain,omitempty"` // a Service of the set: pods resolve as NAME.SUBDOMAIN, too
	Template  json.RawMessage `json:"template"`            // metadata and spec of the pod template, as written
	// Labels and Annotations are what the kind's operator adds to those of the template.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Env are variables that the kind's operator adds to each container. They come after the
	// template's own and do not replace them.
	Env []EnvVar `json:"env,omitempty"`
	// Files are what the kind's operator puts into each container, by absolute name, such as the hostfile
	// of an MPIJob.
	Files map[string]string `json:"files,omitempty"`
}

// EnvVar is a variable of an operator. In its value, as in those of Labels, Annotations and Files, {i}
// stands for the pod's index in its role, {i+1} for one more, {pod:ROLE:K} for the name of a pod that
// resolves everywhere in the set, {task} for what Set.ForTask says.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Complete is a condition of success.
type Complete struct {
	Roles []string `json:"roles,omitempty"` // whose pods count; empty: all roles
	Any   bool     `json:"any,omitempty"`   // one pod that ends with success will do; else all of them
	// Index is that of the one pod that counts in each of these roles; nil: all of a role's pods.
	Index *int `json:"index,omitempty"`
}

// ConfigMap is one that stands in the same file.
type ConfigMap struct {
	Name   string            `json:"name"`
	Data   map[string]string `json:"data,omitempty"`
	Binary map[string][]byte `json:"binary,omitempty"`
}

// Secret is one that pods name, with its keys. Values are the server's store's, under the name
// StoreName; those of a secret that is the cluster's own (Foreign) are not known here.
type Secret struct {
	Name    string   `json:"name"`
	Keys    []string `json:"keys,omitempty"`
	Foreign bool     `json:"foreign,omitempty"` // it is not in the file: on Kubernetes that of the namespace, elsewhere the store's
}

// StoreName is the name of a secret's key in the server's store of secrets, whose names are in lower case.
func StoreName(secret, key string) string { return strings.ToLower(secret + "." + key) }

// Service gives the pods of a role a name.
type Service struct {
	Name     string `json:"name"`
	Role     string `json:"role"`               // empty: all pods of the set
	Headless bool   `json:"headless,omitempty"` // the name stands for all of its pods; else for any one
	Ports    []Port `json:"ports,omitempty"`
}

// Port is one of a Service.
type Port struct {
	Name   string `json:"name,omitempty"`
	Port   int    `json:"port"`             // of the Service
	Target string `json:"target,omitempty"` // number or name of the container's port; empty: Port
}

// NameOf is the name of a role's pod of an index from 0.
func (r *Role) NameOf(i int) string { return fillIndex(r.PodName, i) }

func fillIndex(text string, i int) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "{i}", strconv.Itoa(i)), "{i+1}", strconv.Itoa(i+1))
}

// Role is the one of a name; nil: there is none.
func (s *Set) Role(name string) *Role {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

// ForTask is the set with the number of one job in the place of {task} in all names and values of
// operators: the index of an array's task, or that of a controller's part. The set itself is not changed.
func (s *Set) ForTask(n uint32) *Set {
	number := strconv.FormatUint(uint64(n), 10)
	fill := func(text string) string { return strings.ReplaceAll(text, "{task}", number) }
	fillMap := func(m map[string]string) map[string]string {
		if m == nil {
			return nil
		}
		out := make(map[string]string, len(m))
		for k, v := range m {
			out[k] = fill(v)
		}
		return out
	}
	out := *s
	out.Roles = slices.Clone(s.Roles)
	for i := range out.Roles {
		r := &out.Roles[i]
		r.PodName, r.Subdomain = fill(r.PodName), fill(r.Subdomain)
		r.Labels, r.Annotations, r.Files = fillMap(r.Labels), fillMap(r.Annotations), fillMap(r.Files)
		r.Env = slices.Clone(r.Env)
		for k := range r.Env {
			r.Env[k].Value = fill(r.Env[k].Value)
		}
	}
	return &out
}

// ForJob reads the set of a job of kind job.Pods, as it is for that job. The error is fault.Invalid.
func ForJob(j *job.Job, script []byte) (*Set, error) {
	s, err := Parse(script)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err).Advise("submit the manifest itself: cox submit FILE")
	}
	switch {
	case j.Array != nil:
		s = s.ForTask(j.Array.Index)
	case j.Spec != nil && j.Spec.Part != nil:
		s = s.ForTask(j.Spec.Part.Index)
	default:
		s = s.ForTask(0)
	}
	return s, nil
}

// Expand gives the value of an operator's variable for the pod of an index from 0.
func (s *Set) Expand(value string, index int) string {
	value = fillIndex(value, index)
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(value, "{pod:")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		inside, after, closed := strings.Cut(rest, "}")
		role, k, _ := strings.Cut(inside, ":")
		n, err := strconv.Atoi(k)
		if r := s.Role(role); closed && err == nil && r != nil {
			out.WriteString(s.Address(r, n))
		} else {
			out.WriteString("{pod:" + inside)
			if closed {
				out.WriteString("}")
			}
		}
		value = after
	}
}

// Address is a name of a role's pod that resolves in every pod of the set.
func (s *Set) Address(r *Role, i int) string {
	if r.Subdomain == "" {
		return r.NameOf(i)
	}
	return r.NameOf(i) + "." + r.Subdomain
}

// Parse reads a Set from JSON and checks it.
func Parse(data []byte) (*Set, error) {
	if len(data) > MaxSetSize {
		return nil, fmt.Errorf("the pods of a job are %d bytes; at most %d", len(data), MaxSetSize)
	}
	s := new(Set)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("the pods of a job: %w", err)
	}
	return s, s.Check()
}

// Check reports what no set can have.
func (s *Set) Check() error {
	if len(s.Roles) == 0 {
		return fmt.Errorf("the pods of a job: there is no role")
	}
	seen := map[string]bool{}
	for i := range s.Roles {
		r := &s.Roles[i]
		switch {
		case r.Name == "" || seen[r.Name]:
			return fmt.Errorf("roles[%d]: the name %q is empty or there twice", i, r.Name)
		case r.Replicas < 1:
			return fmt.Errorf("roles[%d] (%s): %d pods; at least one", i, r.Name, r.Replicas)
		case r.Replicas > 1 && !strings.Contains(r.PodName, "{i}") && !strings.Contains(r.PodName, "{i+1}"), r.PodName == "":
			return fmt.Errorf("roles[%d] (%s): the name %q is not one for each pod", i, r.Name, r.PodName)
		}
		seen[r.Name] = true
		p, err := r.Pod()
		if err != nil {
			return err
		}
		if err := r.checkNames(p); err != nil {
			return fmt.Errorf("roles[%d] (%.40q): %w", i, r.Name, err)
		}
	}
	if s.Complete != nil {
		for _, name := range s.Complete.Roles {
			if !seen[name] {
				return fmt.Errorf("complete: there is no role %q", name)
			}
		}
	}
	return s.checkNames()
}

// Pod is what engines without Kubernetes read of the role's template.
func (r *Role) Pod() (*PodTemplate, error) {
	t := new(PodTemplate)
	if err := json.Unmarshal(r.Template, t); err != nil {
		return nil, fmt.Errorf("role %s: the pod template: %w", r.Name, err)
	}
	if len(t.Spec.Containers) == 0 {
		return nil, fmt.Errorf("role %s: the pod template has no container", r.Name)
	}
	return t, nil
}
