//go:build !planted_rules_forgotten

package planted

const RulesForgotten = false
