package work

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// runPolicy is that of the kinds of kubeflow.org.
type runPolicy struct {
	BackoffLimit          *int   `json:"backoffLimit"`
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
	Suspend               bool   `json:"suspend"`
}

// replicaSpec is one role of the kinds of kubeflow.org.
type replicaSpec struct {
	Replicas      *int     `json:"replicas"`
	RestartPolicy string   `json:"restartPolicy"`
	Template      template `json:"template"`
}

// trainingLabels are what the training operator (1.9) adds to the pods of a role.
func (b *builder) trainingLabels(role string) map[string]string {
	return map[string]string{
		"training.kubeflow.org/job-name": b.w.Name, "training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": "{i}",
		"training.kubeflow.org/operator-name": strings.ToLower(b.d.Kind) + "-controller",
	}
}

// setRunPolicy takes the limits of a job of kubeflow.org.
func (b *builder) setRunPolicy(p *runPolicy, restarts bool) {
	if restarts { // else a pod that fails is final, whatever the limit is
		b.setRetries(orNumber(p.BackoffLimit, defaultBackoffLimit))
	}
	b.setLimit(p.ActiveDeadlineSeconds)
	b.w.Job.Held = p.Suspend
}

// pytorchPort is the port of the master where its container names none.
const pytorchPort = 23456

// compilePyTorch makes a gang of a PyTorchJob, with the names and variables of the training operator 1.9.
func (f *file) compilePyTorch(b *builder) error {
	var doc struct {
		Spec struct {
			Specs     map[string]replicaSpec `json:"pytorchReplicaSpecs"`
			RunPolicy runPolicy              `json:"runPolicy"`
			PerNode   string                 `json:"nprocPerNode"`
			Elastic   *struct {
				MinReplicas *int   `json:"minReplicas"`
				MaxReplicas *int   `json:"maxReplicas"`
				Backend     string `json:"rdzvBackend"`
				Port        *int   `json:"rdzvPort"`
				ID          string `json:"rdzvId"`
				PerNode     *int   `json:"nProcPerNode"`
				MaxRestarts *int   `json:"maxRestarts"`
			} `json:"elasticPolicy"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	master, hasMaster := doc.Spec.Specs["Master"]
	worker, hasWorker := doc.Spec.Specs["Worker"]
	if !hasMaster && !hasWorker {
		return b.fail("spec.pytorchReplicaSpecs", "write Master, Worker or both", "there is no role")
	}
	if hasMaster && orOne(master.Replicas) != 1 {
		return b.fail("spec.pytorchReplicaSpecs.Master.replicas", "write 1; the others are Worker", "a PyTorchJob has one master, not %d", orOne(master.Replicas))
	}
	pods, lead := 0, "master"
	if hasMaster {
		pods++
	} else {
		lead = "worker"
	}
	if hasWorker {
		pods += orOne(worker.Replicas)
	}
	port := pytorchPort
	restarts := false
	add := func(name, key string, r *replicaSpec, rank string) error {
		path := "spec.pytorchReplicaSpecs." + key
		role := podspec.Role{Name: name, Replicas: orOne(r.Replicas), PodName: b.w.Name + "-" + name + "-{i}", Template: r.Template.RawMessage, Labels: b.trainingLabels(name)}
		role.Labels["training.kubeflow.org/job-role"] = name
		p, err := b.addRole(role, path+".template")
		if err != nil {
			return err
		}
		if name == lead {
			port = portNamed(p, "pytorchjob-port", pytorchPort)
		}
		added := &b.w.Set.Roles[len(b.w.Set.Roles)-1]
		addr := "{pod:" + lead + ":0}"
		added.Env = append(
			added.Env, podspec.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"},
			podspec.EnvVar{Name: "MASTER_PORT", Value: strconv.Itoa(port)}, podspec.EnvVar{Name: "MASTER_ADDR", Value: addr},
			podspec.EnvVar{Name: "PET_MASTER_PORT", Value: strconv.Itoa(port)}, podspec.EnvVar{Name: "PET_MASTER_ADDR", Value: addr},
			podspec.EnvVar{Name: "WORLD_SIZE", Value: strconv.Itoa(pods * max(1, numberOf(doc.Spec.PerNode)))},
			podspec.EnvVar{Name: "RANK", Value: rank}, podspec.EnvVar{Name: "PET_NODE_RANK", Value: rank},
		)
		if e := doc.Spec.Elastic; e == nil {
			added.Env = append(added.Env, podspec.EnvVar{Name: "PET_NNODES", Value: strconv.Itoa(pods)})
			if doc.Spec.PerNode != "" {
				added.Env = append(added.Env, podspec.EnvVar{Name: "PET_NPROC_PER_NODE", Value: doc.Spec.PerNode})
			}
		} else {
			added.Env = append(
				added.Env, podspec.EnvVar{Name: "PET_NNODES", Value: strconv.Itoa(pods)}, // all of them are there, always
				podspec.EnvVar{Name: "PET_RDZV_BACKEND", Value: firstText(e.Backend, "c10d")},
				podspec.EnvVar{Name: "PET_RDZV_ENDPOINT", Value: addr + ":" + strconv.Itoa(orNumber(e.Port, port))},
				podspec.EnvVar{Name: "PET_RDZV_ID", Value: firstText(e.ID, b.w.Name)}, podspec.EnvVar{Name: "PET_NPROC_PER_NODE", Value: strconv.Itoa(orOne(e.PerNode))},
			)
			if e.MaxRestarts != nil {
				added.Env = append(added.Env, podspec.EnvVar{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(*e.MaxRestarts)})
			}
		}
		b.setLimit(templateLimit(p))
		restarts = restarts || r.RestartPolicy != "Never" // OnFailure where nothing is said
		return nil
	}
	rank := "{i}"
	if hasMaster {
		if err := add("master", "Master", &master, "0"); err != nil {
			return err
		}
		rank = "{i+1}"
		b.w.Set.Complete = &podspec.Complete{Roles: []string{"master"}}
	}
	if hasWorker {
		if err := add("worker", "Worker", &worker, rank); err != nil {
			return err
		}
	}
	b.setRunPolicy(&doc.Spec.RunPolicy, restarts)
	return nil
}

// portNamed is the port of a name of a pod's containers, or another.
func portNamed(p *podspec.PodTemplate, name string, otherwise int) int {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name {
				return port.Port
			}
		}
	}
	return otherwise
}

// numberOf is a text as a number; 0 where it is none.
func numberOf(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func orNumber(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}
