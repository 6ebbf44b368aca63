package work

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// volcanoPolicy is what a Volcano Job does at an event.
type volcanoPolicy struct {
	Event  string   `json:"event"`
	Events []string `json:"events"`
	Action string   `json:"action"`
}

// on reports whether the policy is for an event.
func (p *volcanoPolicy) on(events ...string) bool {
	return slices.ContainsFunc(append([]string{p.Event}, p.Events...), func(e string) bool { return e == "*" || slices.Contains(events, e) })
}

// compileVolcano makes a gang of a Job of Volcano (batch.volcano.sh/v1alpha1, names and variables of Volcano 1.12):
// the pods of a task are JOB-TASK-N, and with the plugin svc they resolve as JOB-TASK-N.JOB.
func (f *file) compileVolcano(b *builder) error {
	b.w.Kind, b.w.Set.Kind = "VolcanoJob", "VolcanoJob"
	var doc struct {
		Spec struct {
			MinAvailable *int                `json:"minAvailable"`
			MaxRetry     *int                `json:"maxRetry"`
			Plugins      map[string][]string `json:"plugins"`
			Policies     []volcanoPolicy     `json:"policies"`
			Tasks        []struct {
				Name         string          `json:"name"`
				Replicas     *int            `json:"replicas"`
				MinAvailable *int            `json:"minAvailable"`
				Template     template        `json:"template"`
				Policies     []volcanoPolicy `json:"policies"`
			} `json:"tasks"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	for name := range doc.Spec.Plugins {
		switch name {
		case "svc", "env":
		case "pytorch":
			return b.fail("spec.plugins.pytorch", "write it as a PyTorchJob, whose pods have the same variables", "the plugin pytorch is not had here")
		default:
			return b.fail("spec.plugins."+name, "leave it out: pods find each other by name (svc); a job of MPI is an MPIJob", "the plugin %s is not had here", name)
		}
	}
	_, names := doc.Spec.Plugins["svc"]
	total := 0
	var hosts []podspec.EnvVar
	for k := range doc.Spec.Tasks {
		t := &doc.Spec.Tasks[k]
		if k >= maxRoles {
			return b.fail("spec.tasks", "use fewer, larger tasks", "it has %d tasks; at most %d", len(doc.Spec.Tasks), maxRoles)
		}
		if t.Name == "" {
			t.Name = "default" + strconv.Itoa(k)
		}
		n := orOne(t.Replicas)
		if total += n; total > maxGang {
			return b.checkGang(total, "spec.tasks["+strconv.Itoa(k)+"].replicas")
		}
		var all []string
		for i := range n {
			all = append(all, b.w.Name+"-"+t.Name+"-"+strconv.Itoa(i)+"."+b.w.Name)
		}
		key := "VC_" + strings.ToUpper(strings.ReplaceAll(t.Name, "-", "_"))
		hosts = append(hosts, podspec.EnvVar{Name: key + "_HOSTS", Value: strings.Join(all, ",")}, podspec.EnvVar{Name: key + "_NUM", Value: strconv.Itoa(n)})
	}
	list := 0 // bytes of the names of all pods, which each role has twice
	for _, h := range hosts {
		list += 2 * len(h.Value)
	}
	if names && list*len(doc.Spec.Tasks) > podspec.MaxSetSize {
		return b.fail("spec.tasks", "use fewer, larger tasks, or leave the plugin svc out", "each of the %d tasks has the names of all %d pods, which is more than %d bytes", len(doc.Spec.Tasks), total, podspec.MaxSetSize)
	}
	var complete []string
	retry := slices.ContainsFunc(doc.Spec.Policies, func(p volcanoPolicy) bool { return p.Action == "RestartJob" && p.on("PodFailed", "PodEvicted") })
	for k := range doc.Spec.Tasks {
		t := &doc.Spec.Tasks[k]
		path := "spec.tasks[" + strconv.Itoa(k) + "]"
		r := podspec.Role{
			Name: t.Name, Replicas: orOne(t.Replicas), PodName: b.w.Name + "-" + t.Name + "-{i}", Template: t.Template.RawMessage,
			Labels:      map[string]string{"volcano.sh/job-name": b.w.Name, "volcano.sh/task-spec": t.Name, "volcano.sh/task-index": "{i}"},
			Annotations: map[string]string{"volcano.sh/task-spec": t.Name},
		}
		if _, ok := doc.Spec.Plugins["env"]; ok {
			r.Env = append(r.Env, podspec.EnvVar{Name: "VK_TASK_INDEX", Value: "{i}"}, podspec.EnvVar{Name: "VC_TASK_INDEX", Value: "{i}"})
		}
		if names {
			r.Subdomain, r.Env = b.w.Name, append(r.Env, hosts...)
			r.Files = map[string]string{}
			for _, h := range hosts {
				if name, ok := strings.CutSuffix(h.Name, "_HOSTS"); ok {
					r.Files["/etc/volcano/"+strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "VC_"), "_", "-"))+".host"] = strings.ReplaceAll(h.Value, ",", "\n")
				}
			}
		}
		p, err := b.addRole(r, path+".template")
		if err != nil {
			return err
		}
		b.setLimit(templateLimit(p))
		for _, policy := range t.Policies {
			switch {
			case policy.Action == "CompleteJob" && policy.on("TaskCompleted"):
				complete = append(complete, t.Name)
			case policy.Action == "RestartJob" && policy.on("PodFailed", "PodEvicted"):
				retry = true
			}
		}
	}
	if names {
		b.addService(b.w.Name, "")
	}
	if len(complete) > 0 {
		b.w.Set.Complete = &podspec.Complete{Roles: complete}
	}
	if least := doc.Spec.MinAvailable; least != nil && *least < total {
		b.warn("spec.minAvailable", "is taken as %d: the job starts with all of its pods", total)
	}
	if retry {
		b.setRetries(orNumber(doc.Spec.MaxRetry, 3)) // Volcano's
	}
	return nil
}
