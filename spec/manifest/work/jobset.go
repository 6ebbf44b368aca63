package work

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// compileJobSet makes one gang of all Jobs of a JobSet (jobset.x-k8s.io/v1alpha2, names, labels and defaults as
// JobSet 0.8 has them): NAME-JOB-REPLICA-POD resolves as NAME-JOB-REPLICA-POD.NAME.
func (f *file) compileJobSet(b *builder) error {
	var doc struct {
		Spec struct {
			ReplicatedJobs []struct {
				Name     string `json:"name"`
				Replicas *int   `json:"replicas"`
				Template struct {
					Spec jobSpec `json:"spec"`
				} `json:"template"`
			} `json:"replicatedJobs"`
			Network struct {
				Subdomain string `json:"subdomain"`
			} `json:"network"`
			SuccessPolicy *struct {
				Operator string   `json:"operator"`
				Targets  []string `json:"targetReplicatedJobs"`
			} `json:"successPolicy"`
			FailurePolicy *struct {
				MaxRestarts int `json:"maxRestarts"`
			} `json:"failurePolicy"`
			Suspend bool `json:"suspend"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	domain := firstText(doc.Spec.Network.Subdomain, b.w.Name)
	roles := map[string][]string{} // of a replicated job
	global := 0                    // number of a Job in the whole set
	for k := range doc.Spec.ReplicatedJobs {
		r := &doc.Spec.ReplicatedJobs[k]
		path := "spec.replicatedJobs[" + strconv.Itoa(k) + "]"
		s, jobs := &r.Template.Spec, orOne(r.Replicas)
		parallel, count := orOne(s.Parallelism), orOne(s.Completions)
		if s.Completions == nil {
			count = parallel
		}
		if parallel < count {
			return b.fail(path+".template.spec.parallelism", "write the same number as completions", "%d of %d pods would run at once, and a JobSet is one gang", parallel, count)
		}
		if err := b.checkGang(jobs*max(count, 1), path+".replicas"); err != nil {
			return err
		}
		if all := len(b.w.Set.Roles) + jobs; count != 1 && all > maxRoles {
			return b.fail(path+".replicas", "write fewer Jobs, with more pods each", "each Job of several pods is a role, and these are %d roles; at most %d", all, maxRoles)
		}
		for _, role := range jobRoles(b.w.Name, r.Name, jobs, count) {
			role.Subdomain, role.Template = domain, s.Template.RawMessage
			role.Labels["jobset.sigs.k8s.io/job-global-index"] = strconv.Itoa(global)
			if jobs > 1 && count == 1 { // one role for all
				role.Labels["jobset.sigs.k8s.io/job-global-index"] = "{i}"
				if global > 0 {
					delete(role.Labels, "jobset.sigs.k8s.io/job-global-index")
				}
				global += jobs - 1
			}
			global++
			role.Annotations = role.Labels
			p, err := b.addRole(role, path+".template.spec.template")
			if err != nil {
				return err
			}
			roles[r.Name] = append(roles[r.Name], role.Name)
			b.setLimit(templateLimit(p))
		}
		b.setLimit(s.ActiveDeadlineSeconds)
	}
	b.addService(domain, "")
	if p := doc.Spec.SuccessPolicy; p != nil {
		c := &podspec.Complete{Any: p.Operator == "Any"}
		for _, name := range p.Targets {
			if len(roles[name]) == 0 {
				return b.fail("spec.successPolicy.targetReplicatedJobs", "name one of spec.replicatedJobs", "there is no replicated job %q", name)
			}
			c.Roles = append(c.Roles, roles[name]...)
		}
		if c.Any || len(c.Roles) > 0 {
			b.w.Set.Complete = c
		}
	}
	if doc.Spec.FailurePolicy != nil {
		b.setRetries(doc.Spec.FailurePolicy.MaxRestarts)
	}
	b.w.Job.Held = doc.Spec.Suspend
	return nil
}

// jobRoles are the roles of a replicated job with so many Jobs of so many pods: one role where each Job has
// one pod, else one for each Job.
func jobRoles(set, name string, jobs, pods int) (out []podspec.Role) {
	labels := func(index, key string) map[string]string {
		return map[string]string{
			"jobset.sigs.k8s.io/jobset-name": set, "jobset.sigs.k8s.io/replicatedjob-name": name,
			"jobset.sigs.k8s.io/replicatedjob-replicas": strconv.Itoa(jobs), "jobset.sigs.k8s.io/job-index": index,
			"jobset.sigs.k8s.io/restart-attempt": "0", completionAnnotation: key, "job-name": set + "-" + name + "-" + index,
		}
	}
	env := func(index string) []podspec.EnvVar { return []podspec.EnvVar{{Name: completionIndex, Value: index}} }
	if pods == 1 {
		return []podspec.Role{{Name: name, Replicas: jobs, PodName: set + "-" + name + "-{i}-0", Labels: labels("{i}", "0"), Env: env("0")}}
	}
	for j := range jobs {
		index := strconv.Itoa(j)
		out = append(out, podspec.Role{
			Name: name + "-" + index, Replicas: pods, PodName: set + "-" + name + "-" + index + "-{i}", Labels: labels(index, "{i}"), Env: env("{i}"),
		})
	}
	return out
}
