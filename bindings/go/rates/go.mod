module fibula.example/bindings/go/rates

go 1.26.0

require (
	fibula.example/bindings/go v0.1.0
	github.com/gaissmai/bart v0.30.0
	github.com/oschwald/maxminddb-golang/v2 v2.9.0
	go4.org/netipx v0.0.0-20260823151212-3075585bcbeb
)

require golang.org/x/sys v0.49.0 // indirect

replace fibula.example/bindings/go => ../
