// Package planted has bugs that are put in on purpose, one for each build tag
// planted_NAME. They show that the tests of the five promises find what they are
// there for: test/simulate builds itself once with each tag and has to find the bug,
// and to name the promise that it breaks.
//
// A bug is a constant. Without its tag the constant is false and the compiler removes
// what stands behind it, so that the product does not have it; a test of this package
// and one of test/simulate watch that. Nothing else belongs here, and no package
// decides anything by these constants but whether to be wrong.
package planted

// Bug is one of them.
type Bug struct {
	Tag  string // of the build
	On   bool   // whether this build has it
	Does string // what is wrong
}

// Bugs lists them, by the promise that they break.
func Bugs() []Bug {
	return []Bug{
		{"planted_part_of_gang", PartOfGang, "what is launched lacks the last node of a gang"},
		{"planted_not_undone", NotUndone, "a launch that failed is over before what was set up of it is gone"},
		{"planted_rest_of_gang", RestOfGang, "where one node of a gang fails, the others begin"},

		{"planted_free_unproved", FreeUnproved, "an attempt of which nobody can tell what lives is freed"},
		{"planted_late_report", LateReport, "the end of an attempt is taken for that of the next one"},
		{"planted_launch_first", LaunchFirst, "the engine is called before the journal has what it is to start"},
		{"planted_launch_again", LaunchAgain, "a server that starts again launches what may run as another attempt"},

		{"planted_unfenced", Unfenced, "the store takes records of a leader that was followed"},
		{"planted_followed_acts", FollowedActs, "a server ends what it does not know without asking whether it still leads"},
		{"planted_drain_ignored", DrainIgnored, "a drained node gets new work"},

		{"planted_replay_forgets", ReplayForgets, "a hold is forgotten when the journal is replayed"},
		{"planted_map_order", MapOrder, "decisions are carried out in the order of a map"},

		{"planted_early_number", EarlyNumber, "a submission is answered before it is durable"},
		{"planted_drop_reason", DropReason, "jobs behind others wait without a reason"},
		{"planted_array_limit", ArrayLimit, "the limit of running tasks of an array is not kept"},
		{"planted_lost_submit", LostSubmit, "a submission that could not be written is answered with a number"},
		{"planted_cancel_ended", CancelEnded, "a job that has ended is cancelled"},

		{"planted_rules_forgotten", RulesForgotten, "a server that starts again does not know the site's rules"},
		{"planted_usage_lost", UsageLost, "what a job used since the last tick is not kept when it ends"},
		{"planted_uncounted", Uncounted, "when the fleet changes, what runs is no longer counted against limits"},
		{"planted_anyone_preempts", AnyonePreempts, "a job takes the place of whom it does not outrank"},
		{"planted_borrows_all", BorrowsAll, "an account borrows more than it may"},
		{"planted_reservation_open", ReservationOpen, "a reservation does not keep off jobs whose limit reaches into it"},
		{"planted_victim_lost", VictimLost, "a job that made room is not queued again"},
	}
}
