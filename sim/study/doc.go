// Package study runs a recorded or invented workload through the scheduling core on
// simulated time and measures what came of it: the machinery of cox simulate.
//
// The core is the production one and decides as it would live. What is left out is
// said in sim/sim: launches take no time, nothing fails. A job runs as long as it
// did when it was recorded, unless its limit ends it before.
//
// A study is deterministic: the same trace, cluster and policy give the same result.
// It reads no clock but to say how long it took itself.
package study
