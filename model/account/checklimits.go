package account

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// checkLimits finds limits that mean nothing where they stand.
func (c *check) checkLimits(path string, l *Limits, ofQOS bool) {
	v := reflect.ValueOf(l).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		at, given := path+"."+name, !v.Field(i).IsZero()
		if given && !ofQOS && f.Tag.Get("only") == "qos" {
			c.addProblem(at, "put it into the limits of a QOS; what is of each user stands with the user, what is of all together in group", "only a QOS has such a limit")
			continue
		}
		switch of := v.Field(i).Interface().(type) {
		case TRES:
			c.checkTRES(at, of)
		case *int64:
			if of != nil && *of < 0 {
				c.addProblem(at, "write a number from 0 on, or leave it out: not limited", "%d is negative", *of)
			}
		case *Duration:
			if of != nil && *of < 0 {
				c.addProblem(at, "write a duration, or leave it out: not limited", "is negative")
			}
		}
	}
}

func (c *check) checkTRES(path string, of TRES) {
	for _, name := range sortedNames(of) {
		if lic, ok := strings.CutPrefix(name, "license/"); ok && !c.licenses[lic] {
			c.addUnknown(path+"."+name, "licence", lic)
		}
		if of[name] < 0 {
			c.addProblem(path+"."+name, "write an amount from 0 on, or leave it out: not limited", "%d is negative", of[name])
		}
	}
}

func sortedNames[T any](m map[string]T) []string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// checkQuota finds quotas that cannot be met.
func (c *check) checkQuota(path string, a *Account) {
	q := a.Quota
	named := map[string]bool{}
	for i := range q.Flavors {
		f, at := &q.Flavors[i], fmt.Sprintf("%s.flavors[%d]", path, i)
		switch {
		case !c.flavors[f.Flavor]:
			c.addUnknown(at+".flavor", "flavour", f.Flavor)
		case named[f.Flavor]:
			c.addProblem(at+".flavor", "write all its resources in one place", "flavour %s is there twice", f.Flavor)
		}
		named[f.Flavor] = true
		c.checkResources(at+".resources", f)
	}
	c.checkFlavorGroups(path, q)
	if a.Parent != "" && a.Parent != RootName {
		if q.Fair {
			c.addProblem(path+".fair", "put it at the account above all others of the tree", "%s is not the root of its tree, and how a tree shares is said there", a.Name)
		}
		if len(q.Strategies) > 0 {
			c.addProblem(path+".strategies", "put them at the account above all others of the tree", "%s is not the root of its tree, and how a tree shares is said there", a.Name)
		}
	}
	if len(q.Strategies) > 0 && !legalStrategies(q.Strategies) {
		c.addProblem(path+".strategies", "write [final-share], [initial-share] or [final-share, initial-share]", "these cannot be combined so")
	}
	if q.Weight != nil && *q.Weight < 0 {
		c.addProblem(path+".weight", "write a number from 0 on", "%g is negative", *q.Weight)
	}
	if q.Borrowing != NoVictims && q.Reclaim == NoVictims {
		c.addProblem(path+".borrowing", "say by reclaim whose jobs may be stopped at all", "nothing is reclaimed, so nothing can be to borrow")
	}
	if q.MaxPriority != nil && q.Borrowing == NoVictims {
		c.addProblem(path+".max_priority", "say borrowing: lower-priority, or leave it out", "bounds whom borrowing stops, and it stops nobody")
	}
}

func legalStrategies(s []Strategy) bool {
	return len(s) == 1 || len(s) == 2 && s[0] == FinalShare && s[1] == InitialShare
}

func (c *check) checkResources(path string, f *FlavorQuota) {
	seen := map[string]bool{}
	for i := range f.Resources {
		r, at := &f.Resources[i], fmt.Sprintf("%s[%d]", path, i)
		switch {
		case r.Name == "":
			c.addProblem(at+".name", "write cpu, memory, gpu, …", "has no name")
		case seen[r.Name]:
			c.addProblem(at+".name", "keep one of them", "%s is there twice", r.Name)
		case strings.HasPrefix(r.Name, "gpu:"):
			c.addProblem(at+".name", "write gpu; the flavour says by gpu_type of which type they are", "types of device are told apart by flavours")
		}
		seen[r.Name] = true
		c.checkAmount(at+".nominal", &r.Nominal)
		c.checkAmount(at+".borrow", r.Borrow)
		c.checkAmount(at+".lend", r.Lend)
		if r.Lend != nil && *r.Lend > r.Nominal {
			c.addProblem(at+".lend", "lend at most what is nominal", "more is lent than there is")
		}
	}
	if len(f.Resources) == 0 {
		c.addProblem(path, "write - {name: gpu, nominal: 8}", "flavour %s has no amounts", f.Flavor)
	}
}

func (c *check) checkAmount(path string, a *resource.Amount) {
	if a != nil && *a < 0 {
		c.addProblem(path, "write an amount from 0 on", "%d is negative", *a)
	}
}

// checkFlavorGroups finds flavours that share some of their resources and not all of them: they
// would be alternatives for one part of a job and not for another.
func (c *check) checkFlavorGroups(path string, q *Quota) {
	sets := make([][]string, len(q.Flavors))
	for i := range q.Flavors {
		for _, r := range q.Flavors[i].Resources {
			sets[i] = append(sets[i], r.Name)
		}
		slices.Sort(sets[i])
	}
	for i := range sets {
		for j := range i {
			common := slices.ContainsFunc(sets[i], func(n string) bool { return slices.Contains(sets[j], n) })
			if common && !slices.Equal(sets[i], sets[j]) {
				c.addProblem(fmt.Sprintf("%s.flavors[%d].resources", path, i), "give both the same resources, or none in common",
					"%s has %s and %s has %s", q.Flavors[i].Flavor, strings.Join(sets[i], ", "), q.Flavors[j].Flavor, strings.Join(sets[j], ", "))
				return
			}
		}
	}
}
