import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** Serves a database in memory at the port of its argument until it is killed. */
public class Server {
    /** The oldest version that the driver accepts; the server's own latest has an older wire version. */
    static class Accepted implements MongoVersion {
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        public int getWireVersion() {
            return 9;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var backend = new MemoryBackend().version(new Accepted());
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.currentThread().join();
    }
}
