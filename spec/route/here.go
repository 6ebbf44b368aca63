package route

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/engine"
)

// Fit says how well a pool suits an advice.
type Fit string

// The fits, best first.
const (
	Suits    Fit = "suits"    // the engine that is advised, and able
	Possible Fit = "possible" // it can run there, less well
	Consent  Fit = "consent"  // only if the user agrees: gangs are whole in quota, not in placement
	Never    Fit = "never"
)

// PoolVerdict is what an advice means for one pool.
type PoolVerdict struct {
	Pool   string `json:"pool"`
	Engine string `json:"engine"`
	Fit    Fit    `json:"fit"`
	Says   string `json:"says"`
	Chosen bool   `json:"chosen,omitempty"` // a job that names no pool goes there
	Cannot string `json:"cannot,omitempty"` // why it could never run there as it is
	Starts string `json:"starts,omitempty"` // when it is expected to start there: "at once", "in about 2 h"; empty: nobody knows
}

// kube is the engine for Kubernetes and k3s, as pools name it.
const kube = "kube"

// Judge enters into the advice which of the pools can run the work now.
func (a *Advice) Judge(pools []Pool) {
	a.Here = nil
	coupled := a.factOf(TightlyCoupled).Yes() && a.factOf(Nodes).Yes()
	for _, p := range pools {
		v := PoolVerdict{Pool: p.Name, Engine: p.Engine}
		v.Fit, v.Says = a.poolVerdict(p, coupled)
		a.Here = append(a.Here, v)
	}
}

func (a *Advice) poolVerdict(p Pool, coupled bool) (Fit, string) {
	if coupled {
		switch p.Able.Gang {
		case engine.GangStrict:
		case "":
			return Possible, "its engine has not answered: whether gangs start whole there is not known"
		case engine.GangApproximate:
			return Consent, "gangs are whole in quota, not in placement: only with your consent"
		default:
			return Never, "starts tasks one by one: it could hold half of the job for ever"
		}
	}
	wanted := p.Engine == string(a.Engine) || p.Engine == kube && a.Engine != Slurm
	gang := ""
	if coupled {
		gang = "gangs served (strict)"
	}
	switch {
	case a.kept && p.Engine == "local":
		return Suits, "its replicas are kept alive on this machine"
	case a.kept && p.Engine == string(Slurm):
		return Suits, "its replicas are kept alive there, as jobs of Slurm"
	case a.kept && p.Engine == kube && len(a.Needs) == 0:
		return Suits, "its replicas are kept alive there, as pods"
	case wanted && gang != "":
		return Suits, gang
	case wanted:
		return Suits, "the engine that is advised"
	case p.Engine == "local" && len(a.Rules) > 0 && a.Rules[0].Rule == asItIs:
		return Suits, "as it is, on machines of this server"
	case a.Runtime == Ray && p.Engine != kube:
		return Possible, "Ray without autoscaling"
	case p.Engine == "local":
		return Possible, "as virtual nodes of one machine"
	case p.Engine == kube && len(a.Needs) > 0:
		return Possible, "if " + joinConditions(conditionsOf(a.Needs))
	case p.Engine == kube && a.factOf(BareMetal).Yes():
		return Possible, "in containers: what it uses of the machines' own software has to be in the image"
	case p.Engine == string(Slurm) && a.factOf(LongLivedService).Yes():
		return Possible, "until its time limit; with kind: service it is kept alive there"
	}
	return Possible, fmt.Sprintf("on %s instead of %s", p.Engine, a.Engine)
}
