// Package gang knows what a cluster can have for beginning the pods of a job together: the native
// PodGroup, Volcano, KAI, coscheduling, and Kueue. It finds which of them the API server serves and a
// pool's settings let be used, says what a pool and a job need for each, reads from a gang's object why
// the gang waits, and tells Kueue how near each other the pods of a job have to be.
//
// It reads the cluster and writes nothing; driver/kube/render has the objects, and the engine makes them.
// That a kind is served does not show that a scheduler goes by it: the first gang does.
package gang
