package account

import (
	"cmp"
	"fmt"
)

// Prices says what work costs: its usage times the prices of rates. The zero value prices nothing.
type Prices struct {
	Currency string `json:"currency,omitempty" yaml:"currency,omitempty" doc:"name of the currency or unit in reports, as EUR; left out: none is shown"`
	Rates    []Rate `json:"rates,omitempty" yaml:"rates,omitempty" doc:"prices of devices, CPUs and memory: of each of them, the first rate of the list counts that fits the pool and the device and has its price"`
}

// Rate is what an hour costs in a pool, or of a kind of device. A price that is nil is left to
// later rates.
type Rate struct {
	Name       string   `json:"name" yaml:"name" doc:"name of the rate"`
	Pool       string   `json:"pool,omitempty" yaml:"pool,omitempty" doc:"pool that it is for; left out: every pool"`
	GPU        string   `json:"gpu,omitempty" yaml:"gpu,omitempty" doc:"kind of device that gpu_hour is for, as h100; left out: every kind"`
	GPUHour    *float64 `json:"gpu_hour,omitempty" yaml:"gpu_hour,omitempty" doc:"price of a device for an hour; a part of a device costs that part"`
	CPUHour    *float64 `json:"cpu_hour,omitempty" yaml:"cpu_hour,omitempty" doc:"price of a CPU for an hour"`
	MemoryHour *float64 `json:"memory_hour,omitempty" yaml:"memory_hour,omitempty" doc:"price of a GiB of memory for an hour"`
}

// Budget is what an account, with the accounts below it, should not spend more than in a period.
// Nothing is refused that costs more: reports and submissions warn.
type Budget struct {
	Name    string  `json:"name" yaml:"name" doc:"name of the budget"`
	Account string  `json:"account" yaml:"account" doc:"account whose jobs count, with those of the accounts below it"`
	Amount  float64 `json:"amount" yaml:"amount" doc:"what it may cost in a period, in the currency of prices"`
	Period  string  `json:"period,omitempty" yaml:"period,omitempty" enum:"daily,weekly,monthly,quarterly,yearly" doc:"when the spending begins anew, in UTC; left out: monthly"`
	Warn    float64 `json:"warn,omitempty" yaml:"warn,omitempty" doc:"per cent of the amount from which on reports and submissions warn; left out: 100"`
}

// PeriodName is the period as FairShare.Reset names it, monthly where none is said.
func (b *Budget) PeriodName() string { return cmp.Or(b.Period, "monthly") }

// WarnPercent is the per cent of the amount from which on somebody is warned.
func (b *Budget) WarnPercent() float64 { return cmp.Or(b.Warn, 100) }

// priceOf is the first price that which finds in the rates that fit a pool and a kind of device.
func (p *Prices) priceOf(pool, gpu string, which func(*Rate) *float64) (price float64, ok bool) {
	for i := range p.Rates {
		r := &p.Rates[i]
		if n := which(r); n != nil && (r.Pool == "" || r.Pool == pool) && (r.GPU == "" || r.GPU == gpu) {
			return *n, true
		}
	}
	return 0, false
}

// OfGPU is the price of a device of a kind in a pool for an hour; ok is false if no rate has one.
func (p *Prices) OfGPU(pool, gpu string) (price float64, ok bool) {
	return p.priceOf(pool, gpu, func(r *Rate) *float64 { return r.GPUHour })
}

// OfCPU is the price of a CPU in a pool for an hour; ok is false if no rate has one.
func (p *Prices) OfCPU(pool string) (price float64, ok bool) {
	return p.priceOf(pool, "", func(r *Rate) *float64 { return r.CPUHour })
}

// OfMemory is the price of a GiB of memory in a pool for an hour; ok is false if no rate has one.
func (p *Prices) OfMemory(pool string) (price float64, ok bool) {
	return p.priceOf(pool, "", func(r *Rate) *float64 { return r.MemoryHour })
}

// checkPrices finds prices that are none, and budgets of nobody.
func (c *check) checkPrices() {
	for i := range c.p.Prices.Rates {
		r, path := &c.p.Prices.Rates[i], fmt.Sprintf("prices.rates[%d]", i)
		if r.GPUHour == nil && r.CPUHour == nil && r.MemoryHour == nil {
			c.addProblem(path, "add gpu_hour, cpu_hour or memory_hour", "has no price")
		}
		if r.GPU != "" && (r.CPUHour != nil || r.MemoryHour != nil) {
			c.addProblem(path+".gpu", "give CPUs and memory a rate without gpu", "CPUs and memory have no kind of device")
		}
		for _, x := range []struct {
			name  string
			price *float64
		}{{"gpu_hour", r.GPUHour}, {"cpu_hour", r.CPUHour}, {"memory_hour", r.MemoryHour}} {
			if x.price != nil && *x.price < 0 {
				c.addProblem(path+"."+x.name, "write 0 or more", "%g is no price", *x.price)
			}
		}
	}
	for i := range c.p.Budgets {
		b, path := &c.p.Budgets[i], fmt.Sprintf("budgets[%d]", i)
		if _, known := c.accounts[b.Account]; !known {
			c.addProblem(path+".account", "name one of accounts", "there is no account %q", b.Account)
		}
		if b.Amount <= 0 {
			c.addProblem(path+".amount", "write what it may cost, as 5000", "%g is no budget", b.Amount)
		}
		if b.Warn < 0 || b.Warn > 1000 {
			c.addProblem(path+".warn", "write per cent of the amount, as 80", "%g is out of range", b.Warn)
		}
		if len(c.p.Prices.Rates) == 0 {
			c.addProblem(path, "add prices, as in docs/how-to/report.md", "nothing costs anything: there are no prices")
		}
	}
}
