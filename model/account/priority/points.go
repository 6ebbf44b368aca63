package priority

// Factors are a job's, each between 0 and 1 unless the policy wants raw numbers.
type Factors struct {
	Association, FairShare, JobSize, Partition, QOS float64
	TRES                                            []float64 // by Rules.Names
	Age                                             float64
}

// Highest is the largest priority that is reckoned.
const Highest = 1<<32 - 1

// Base is what counts beside age. adjust is added as it is: a site's own number less
// the job's nice.
func (r *Rules) Base(f *Factors, adjust int64) float64 {
	p := float64(r.association * f.Association)
	p += float64(r.fairShare * f.FairShare)
	p += float64(r.size * f.JobSize)
	p += float64(r.partition * f.Partition)
	p += float64(r.qos * f.QOS)
	for i, x := range f.TRES {
		p += float64(r.tres[i] * x)
	}
	return p + float64(adjust)
}

// Points is the priority of a job with that base and age. It never falls when the age
// grows.
func (r *Rules) Points(base, age float64) int64 {
	p := base + float64(r.age*age)
	switch {
	case !(p >= 1):
		return 1 // 0 would mean that it is held
	case p >= Highest:
		return Highest
	}
	return int64(p)
}

// Item is one part of a job's priority: Points is Factor × Weight.
type Item struct {
	Name   string  `json:"name"` // "association", "fair_share", "job_size", "partition", "qos", "tres/NAME", "site", "nice", "age"
	Factor float64 `json:"factor"`
	Weight float64 `json:"weight"`
	Points float64 `json:"points"`
}

// Explain lists the parts of a priority in the order in which they are summed. Site and
// nice are one summand for Base: their sum is exact.
func (r *Rules) Explain(f *Factors, site, nice int64) []Item {
	out := []Item{
		{Name: "association", Factor: f.Association, Weight: r.association},
		{Name: "fair_share", Factor: f.FairShare, Weight: r.fairShare},
		{Name: "job_size", Factor: f.JobSize, Weight: r.size},
		{Name: "partition", Factor: f.Partition, Weight: r.partition},
		{Name: "qos", Factor: f.QOS, Weight: r.qos},
	}
	for i, x := range f.TRES {
		out = append(out, Item{Name: "tres/" + r.Names[i], Factor: x, Weight: r.tres[i]})
	}
	out = append(out,
		Item{Name: "site", Factor: float64(site), Weight: 1},
		Item{Name: "nice", Factor: float64(nice), Weight: -1},
		Item{Name: "age", Factor: f.Age, Weight: r.age})
	for i := range out {
		out[i].Points = float64(out[i].Factor * out[i].Weight)
	}
	return out
}
