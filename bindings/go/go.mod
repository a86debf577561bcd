module fibula.example/bindings/go

go 1.24
