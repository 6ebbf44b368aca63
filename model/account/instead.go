package account

// Instead says what does the work of one of Slurm's flags that are refused, in the form
// in which documents write flags; false: there is no such flag.
func Instead(flag string) (string, bool) {
	why, known := instead[flag]
	return why, known
}

var instead = map[string]string{
	// PriorityFlags
	"incr_only":         "leave it out: a priority follows its factors both ways; cox update --priority sets one that stays",
	"calculate_running": "leave it out: nothing here asks for the priority of a running job, so none is reckoned",
	"fair_tree":         "leave it out: it is so unless no_fair_tree is there",
	"max_tres":          "write billing_rule: max in the rules of the partitions",
	"max_tres_gres":     "write billing_rule: max_gres in the rules of the partitions",
	// flags of a QOS
	"enforce_usage_threshold": "leave it out: usage_threshold is enforced wherever it stands",
	"usage_factor_safe":       "leave it out: a job starts only if it can end within the minutes that are left",
	"required_reservation":    "leave it out, and let the reservation say who may use it (reservations)",
	"requires_reservation":    "leave it out, and let the reservation say who may use it (reservations)",
}
