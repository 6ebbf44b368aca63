//go:build planted_reservation_open

package planted

const ReservationOpen = true
