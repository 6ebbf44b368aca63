package model

type (
	node    struct{}
	work    struct{}
	array   struct{}
	attempt struct{}
	leader  struct{}
)

func (Now) tell(*Model)       {}
func (Machine) tell(*Model)   {}
func (Launched) tell(*Model)  {}
func (Began) tell(*Model)     {}
func (Barrier) tell(*Model)   {}
func (Failed) tell(*Model)    {}
func (Vanished) tell(*Model)  {}
func (Amnesia) tell(*Model)   {}
func (Led) tell(*Model)       {}
func (Appending) tell(*Model) {}
func (Durable) tell(*Model)   {}
func (Appended) tell(*Model)  {}
func (Opened) tell(*Model)    {}
func (Closed) tell(*Model)    {}
func (Called) tell(*Model)    {}
func (Heard) tell(*Model)     {}
func (Asked) tell(*Model)     {}
func (Answered) tell(*Model)  {}
func (Sight) tell(*Model)     {}
func (Twice) tell(*Model)     {}
func (Settled) tell(*Model)   {}
