//go:build !planted

package planted

// The bugs, each false for good: the compiler removes what they would do.
const (
	PartOfGang       = false // what is launched lacks the last node of a gang
	NotUndone        = false // a launch that failed is over before what was set up of it is gone
	RestOfGang       = false // where one node of a gang fails, the others begin
	FreeUnproved     = false // an attempt of which nobody can tell what lives is freed
	LateReport       = false // the end of an attempt is taken for that of the next one
	LaunchFirst      = false // the engine is called before the journal has what it is to start
	LaunchAgain      = false // a server that starts again launches what may run as another attempt
	Unfenced         = false // the store takes records of a leader that was followed
	FollowedActs     = false // a server ends what it does not know without asking whether it still leads
	DrainIgnored     = false // a drained node gets new work
	ReplayForgets    = false // a hold is forgotten when the journal is replayed
	MapOrder         = false // decisions are carried out in the order of a map
	EarlyNumber      = false // a submission is answered before it is durable
	DropReason       = false // jobs behind others wait without a reason
	ArrayLimit       = false // the limit of running tasks of an array is not kept
	LostSubmit       = false // a submission that could not be written is answered with a number
	PartTwice        = false // a part of a controller's work that is submitted again becomes a second job
	CancelEnded      = false // a job that has ended is cancelled
	RulesForgotten   = false // a server that starts again does not know the site's rules
	UsageLost        = false // what a job used since the last tick is not kept when it ends
	Uncounted        = false // when the fleet changes, what runs is no longer counted against limits
	AnyonePreempts   = false // a job takes the place of whom it does not outrank
	BorrowsAll       = false // an account borrows more than it may
	ReservationOpen  = false // a reservation does not keep off jobs whose limit reaches into it
	VictimLost       = false // a job that made room is not queued again
	SurgeIgnored     = false // a service has more replicas than it wants and may have more
	ReadyGivenUp     = false // a service gives up replicas that are ready before others are
	PlaceTwice       = false // a replica is begun anew while the one in its place is being ended
	PartsUncounted   = false // what replicas hold is not counted against quotas
	AdmitUnproved    = false // a machine is admitted in another pool without a proof that it is empty
	UnreachableEmpty = false // a node of which not all could be seen is taken for empty
	OldUnfence       = false // an engine removes a fence for a call of an earlier hand-over
)
