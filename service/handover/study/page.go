package study

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// Level is how much work a fleet has, as parts of all its GPUs.
type Level struct {
	Name     string
	Batch    float64 // that jobs ask for in the mean
	Services float64 // that requests keep at work at the peak of their day
}

// Levels are those of the page.
var Levels = []Level{{"light", 0.35, 0.30}, {"medium", 0.45, 0.40}, {"heavy", 0.55, 0.45}}

// Page is the study of docs/explanation/handover-on-demand.md.
type Page struct {
	Machines, PerNode int
	Days              int // of which the first two are not counted
	Log               *trace.Log
	Azure, Mooncake   []Request
	Seeds             int
	Say               func(string) // of each run; nil: nobody listens
}

// Policies are the rules that are compared, with their names, where each pool has a minimum of machines.
func Policies(least int) []Study {
	span := func(d time.Duration) account.Duration { return account.Duration(d) }
	weight := 4.0
	rules := func(batch, services account.HandoverPool) account.Handover {
		batch.Name, batch.Min, batch.Stay = Batch, least, span(30*time.Minute)
		services.Name, services.Min, services.Weight, services.After = Services, least, &weight, span(time.Minute)
		services.Stay, services.Drain = span(30*time.Minute), span(15*time.Minute)
		return account.Handover{Pools: []account.HandoverPool{batch, services}}
	}
	ends := rules(account.HandoverPool{Drain: span(time.Hour)}, account.HandoverPool{})
	requeues := rules(account.HandoverPool{Drain: span(5 * time.Minute), Requeue: true}, account.HandoverPool{})
	return []Study{
		{Name: "hand-over, jobs end", Rules: ends},
		{Name: "hand-over, jobs requeued", Rules: requeues},
		{Name: "hand-over, jobs requeued that save each 30 min", Rules: requeues, Saves: 30 * time.Minute},
	}
}

// Run runs all splits and policies at one level, each the mean of all seeds.
func (p *Page) Run(l Level) []*Result {
	var rows [][]*Result
	for seed := range p.Seeds {
		for i, s := range p.listStudies(l, uint64(seed+1)) {
			began := time.Now()
			r := s.Run()
			if len(rows) <= i {
				rows = append(rows, nil)
			}
			rows[i] = append(rows[i], r)
			if p.Say != nil {
				p.Say(fmt.Sprintf("%s, seed %d, %s: %.1f s; wait %.2f h, misses %.2f %%, use %.1f %%", l.Name, seed+1, s.Name, time.Since(began).Seconds(), r.MeanWait/3600, 100*r.Misses, 100*r.Use))
			}
		}
	}
	var out []*Result
	for _, list := range rows {
		out = append(out, Mean(list))
	}
	return out
}

// listStudies lists the splits 1/9 … 9/1 and the policies, on the same work.
func (p *Page) listStudies(l Level, seed uint64) (out []Study) {
	all := float64(p.Machines * p.PerNode)
	day := 24 * time.Hour
	base := Study{
		Machines: p.Machines, PerNode: p.PerNode, From: 2 * day, To: time.Duration(p.Days) * day,
		Jobs: Window(p.Log, p.Days, l.Batch*all, 4*p.PerNode, seed),
		Services: []Service{
			{Name: "chat", GPUs: p.PerNode / 2, Load: Days(p.Azure, p.Days, l.Services*all/2, 0.2, 14, seed)},
			{Name: "long", GPUs: p.PerNode, Load: Days(p.Mooncake, p.Days, l.Services*all/2, 0.2, 17, seed+1000)},
		},
	}
	for tenth := 1; tenth <= 9; tenth++ {
		s := base
		s.Name, s.Batch = fmt.Sprintf("%d/%d", tenth, 10-tenth), (p.Machines*tenth+5)/10
		out = append(out, s)
	}
	for _, policy := range Policies(p.Machines / 10) {
		s := base
		s.Name, s.Rules, s.Saves, s.Batch = policy.Name, policy.Rules, policy.Saves, p.Machines/2
		out = append(out, s)
	}
	return out
}

// longestRun is where run times are cut.
const longestRun = 48 * time.Hour

// Window cuts days out of a trace, drawn by a seed, and thins them to so many GPUs of work in the mean.
// Jobs wider than so many GPUs are left out.
func Window(log *trace.Log, days int, gpus float64, widest int, seed uint64) []trace.Job {
	draw := rand.New(rand.NewPCG(seed, 3))
	span := time.Duration(days) * 24 * time.Hour
	last := log.Jobs[len(log.Jobs)-1].Submit
	var best []trace.Job
	for range 50 { // until there are days with work enough
		from := time.Duration(draw.Int64N(int64(max(last-span, 1))))
		var in []trace.Job
		for _, j := range log.Jobs {
			if j.Submit >= from && j.Submit < from+span && j.GPUs > 0 && j.GPUs <= widest {
				j.Submit, j.Run = j.Submit-from, min(j.Run, longestRun)
				in = append(in, j)
			}
		}
		if workOf(in) > workOf(best) {
			best = in
		}
		if workOf(best) >= gpus*span.Seconds() {
			break
		}
	}
	draw.Shuffle(len(best), func(i, k int) { best[i], best[k] = best[k], best[i] })
	sum := 0.0
	for i := range best {
		if sum += float64(best[i].GPUs) * best[i].Run.Seconds(); sum > gpus*span.Seconds() {
			best = best[:i]
			break
		}
	}
	slices.SortStableFunc(best, func(a, b trace.Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	return best
}

func workOf(jobs []trace.Job) (sum float64) {
	for i := range jobs {
		sum += float64(jobs[i].GPUs) * jobs[i].Run.Seconds()
	}
	return sum
}
